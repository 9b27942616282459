-- Takes such jobs out of line: their end has been told. A retry by hand changes the last word in the
-- transaction that puts a job in line, so none of those is touched. What still runs is not stopped; its
-- end is dropped, as that of a lost lease. Indexes: the unique ones of the four tables on job_id, attempt_pkey.
with ended as materialized (
  select i.id
  from unnest(%(ids)s::text[]::bigint[]) i (id)
  cross join lateral (
    select l.state from weirkeeper.attempt l where l.job_id = i.id order by l.run desc limit 1
  ) a
  where a.state in ('completed', 'discarded', 'cancelled')
), line as (
  delete from weirkeeper.ready w using ended e where w.job_id = e.id returning w.job_id
), clock as (
  delete from weirkeeper.scheduled s using ended e where s.job_id = e.id returning s.job_id
), lot as (
  delete from weirkeeper.parked p using ended e where p.job_id = e.id returning p.job_id
), held as (
  delete from weirkeeper.running r using ended e where r.job_id = e.id returning r.job_id
)
select g.job_id::text, 'taken out'
from (table line union table clock union table lot union table held) g
