-- Has such jobs discarded at their moment, or now if that has passed. Index: job_pkey, expiry_pkey.
with noted as (
  insert into weirkeeper.expiry (queue, expires_at, job_id)
  select j.queue, j.expires_at, j.id
  from weirkeeper.job j
  where j.id = any (%(ids)s::text[]::bigint[]) and j.expires_at is not null
  on conflict do nothing
  returning job_id
)
select n.job_id::text, 'will be discarded at its moment' from noted n
