-- Lets such jobs go on, as the sweep does. Locks: the keys, in order of their names.
-- Indexes: parked_pkey, and as of the sweep.
with sought as materialized (
  select p.job_id, p.key from weirkeeper.parked p
  where p.job_id = any (%(ids)s::text[]::bigint[])
), freed as materialized (
  select weirkeeper.unpark(array_agg(s.key)) as n from sought s
)
select s.job_id::text, 'put in line' from sought s cross join freed f where f.n > 0
