-- Jobs that stand in more than one place: they would run twice. These tables hold what waits and
-- runs, not the history. Locks nothing.
select p.job_id::text, 'in ' || string_agg(p.place, ' and ' order by p.place)
from (
  select w.job_id, 'ready' as place from weirkeeper.ready w
  union all select s.job_id, 'scheduled' from weirkeeper.scheduled s
  union all select p.job_id, 'parked' from weirkeeper.parked p
  union all select r.job_id, 'running' from weirkeeper.running r
) p
group by p.job_id
having count(*) > 1
limit %(limit)s
