-- Removes such rows. What still runs is not stopped; its end is dropped, as that of a lost lease.
-- Indexes: job_pkey, attempt_pkey, and the unique ones of the others on job_id.
with orphan as materialized (
  select i.id from unnest(%(ids)s::text[]::bigint[]) i (id)
  where not exists (select from weirkeeper.job j where j.id = i.id)
), line as (
  delete from weirkeeper.ready w using orphan o where w.job_id = o.id returning w.job_id
), clock as (
  delete from weirkeeper.scheduled s using orphan o where s.job_id = o.id returning s.job_id
), lot as (
  delete from weirkeeper.parked p using orphan o where p.job_id = o.id returning p.job_id
), held as (
  delete from weirkeeper.running r using orphan o where r.job_id = o.id returning r.job_id
), logged as (
  delete from weirkeeper.attempt a using orphan o where a.job_id = o.id returning a.job_id
), unique_ones as (
  delete from weirkeeper.unique_key u using orphan o where u.job_id = o.id returning u.job_id
)
select g.job_id::text, count(*) || ' rows removed'
from (table line union all table clock union all table lot union all table held
      union all table logged union all table unique_ones) g
group by g.job_id
