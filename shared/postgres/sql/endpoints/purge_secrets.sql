-- Removes secrets that no longer sign. Locks: the rows. A table of a few rows an endpoint: scanned.
with gone as (
  delete from weirkeeper.endpoint_secret s where s.expires_at <= clock_timestamp() returning 1
)
select count(*) from gone
