-- Jobs that wait or run although the last word on them is a final state: they would run after their end.
-- Locks nothing. Index: attempt_pkey.
select w.job_id::text, 'in ' || w.place || ', though it is ' || a.state
from (
  select job_id, 'ready' as place from weirkeeper.ready
  union all select job_id, 'scheduled' from weirkeeper.scheduled
  union all select job_id, 'parked' from weirkeeper.parked
  union all select job_id, 'running' from weirkeeper.running
) w
cross join lateral (
  select l.state from weirkeeper.attempt l where l.job_id = w.job_id order by l.run desc limit 1
) a
where a.state in ('completed', 'discarded', 'cancelled')
limit %(limit)s
