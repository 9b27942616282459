-- Rows that say otherwise than their jobs: in a kind or priority that is not theirs, or in the line of a queue
-- where their kind does not lie, nobody may ever claim them; with a run that the log has passed their end
-- would not be the last word. A kind that was moved has a minute in which its queue's processes bring its line
-- (moved/bring); what is for later goes where the kind is when its time has come, and what runs is in the queue
-- of its process. These tables hold what waits and runs, not the history. Locks nothing.
-- Indexes: job_pkey, kind_pkey, process_pkey, attempt_pkey.
select w.job_id::text, 'in ' || w.place || case
         when stands.wrong then ': queue ' || w.queue || ', of its kind: ' || coalesce(k.queue, j.queue)
         when w.kind <> j.kind then ': kind ' || w.kind || ', of the job: ' || j.kind
         when w.priority <> j.priority then ': priority ' || w.priority || ', of the job: ' || j.priority
         else ': run ' || w.run || ', in the log: ' || a.run end
from (
  select job_id, queue, kind, priority, run, 'ready' as place, null::bigint as epoch from weirkeeper.ready
  union all select job_id, queue, kind, priority, run, 'scheduled', null from weirkeeper.scheduled
  union all select job_id, queue, kind, priority, run, 'parked', null from weirkeeper.parked
  union all select job_id, queue, kind, priority, run - 1, 'running', epoch from weirkeeper.running
) w
join weirkeeper.job j on j.id = w.job_id
left join weirkeeper.kind k on k.name = j.kind
left join weirkeeper.process o on o.epoch = w.epoch
left join lateral (
  select l.run, l.state from weirkeeper.attempt l where l.job_id = w.job_id order by l.run desc limit 1
) a on true
cross join lateral (
  select w.queue <> coalesce(k.queue, j.queue)
         and (w.queue <> j.queue
              or w.place = 'ready' and k.declared_at < clock_timestamp() - interval '1 minute')
         and (o.queue = w.queue or o.queues ? w.queue) is not true as wrong
) stands
where coalesce(a.state, '') not in ('completed', 'discarded', 'cancelled')  -- verify/ended_but_waits
  and (stands.wrong or (w.kind, w.priority) <> (j.kind, j.priority) or w.run < a.run)
limit %(limit)s
