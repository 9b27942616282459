-- Rows that say otherwise than their jobs: in a queue, kind or priority that is not theirs nobody may ever
-- claim them; with a run that the log has passed their end would not be the last word. These tables hold
-- what waits and runs, not the history. Locks nothing. Indexes: job_pkey, attempt_pkey.
select w.job_id::text, 'in ' || w.place || case
         when w.queue <> j.queue then ': queue ' || w.queue || ', of the job: ' || j.queue
         when w.kind <> j.kind then ': kind ' || w.kind || ', of the job: ' || j.kind
         when w.priority <> j.priority then ': priority ' || w.priority || ', of the job: ' || j.priority
         else ': run ' || w.run || ', in the log: ' || a.run end
from (
  select job_id, queue, kind, priority, run, 'ready' as place from weirkeeper.ready
  union all select job_id, queue, kind, priority, run, 'scheduled' from weirkeeper.scheduled
  union all select job_id, queue, kind, priority, run, 'parked' from weirkeeper.parked
  union all select job_id, queue, kind, priority, run - 1, 'running' from weirkeeper.running
) w
join weirkeeper.job j on j.id = w.job_id
left join lateral (
  select l.run, l.state from weirkeeper.attempt l where l.job_id = w.job_id order by l.run desc limit 1
) a on true
where coalesce(a.state, '') not in ('completed', 'discarded', 'cancelled')  -- verify/ended_but_waits
  and ((w.queue, w.kind, w.priority) is distinct from (j.queue, j.kind, j.priority) or w.run < a.run)
limit %(limit)s
