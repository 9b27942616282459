-- Lets such jobs hold it again; of several that are the same, the oldest. Locks: waits for who adds the same
-- one, in order of the keys. Indexes: job_pkey, unique_key_pkey.
with held as (
  insert into weirkeeper.unique_key (hash, job_id)
  select j.unique_key, min(j.id)
  from weirkeeper.job j
  where j.id = any (%(ids)s::text[]::bigint[]) and j.unique_key is not null
  group by j.unique_key order by j.unique_key
  on conflict do nothing
  returning job_id
)
select h.job_id::text, 'holds it again' from held h
