-- Makes such rows say what their jobs do, in the queue of the kind; what stands in line gets a fresh number.
-- What runs keeps its token, so its end is written, and the queue that its process serves. The delete comes first: a transaction has an id before it draws a number
-- of the line. Indexes: job_pkey, kind_pkey, process_pkey, attempt_pkey, and the unique ones on job_id.
with right_ones as materialized (
  select j.id, coalesce(k.queue, j.queue) as queue, j.kind, j.priority, coalesce(a.run, 0) as run
  from weirkeeper.job j
  left join weirkeeper.kind k on k.name = j.kind
  left join lateral (
    select l.run from weirkeeper.attempt l where l.job_id = j.id order by l.run desc limit 1
  ) a on true
  where j.id = any (%(ids)s::text[]::bigint[])
), held as (
  update weirkeeper.running r
  set queue = case when exists (select from weirkeeper.process o
                                where o.epoch = r.epoch and (o.queue = r.queue or o.queues ? r.queue))
                   then r.queue else t.queue end,
      kind = t.kind, priority = t.priority, run = greatest(r.run, t.run + 1)
  from right_ones t where r.job_id = t.id returning r.job_id, r.queue
), clock as (
  update weirkeeper.scheduled s
  set queue = t.queue, kind = t.kind, priority = t.priority, run = greatest(s.run, t.run)
  from right_ones t where s.job_id = t.id returning s.job_id, s.queue
), lot as (
  update weirkeeper.parked p
  set queue = t.queue, kind = t.kind, priority = t.priority, run = greatest(p.run, t.run)
  from right_ones t where p.job_id = t.id returning p.job_id, p.queue
), gone as (
  delete from weirkeeper.ready w using right_ones t where w.job_id = t.id
  returning w.*, t.queue as queue_of_job, t.kind as kind_of_job, t.priority as priority_of_job,
            greatest(w.run, t.run) as run_of_job
), line as (
  insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, ready_at, key, owner_id)
  select g.queue_of_job, g.kind_of_job, g.priority_of_job, g.job_id, g.attempt, g.run_of_job,
         g.ready_at, g.key, weirkeeper.fair_owner(g.kind_of_job, g.job_id)
  from gone g
  returning job_id, queue
), woken as (
  select count(weirkeeper.wake_queue(q.queue))
  from (select queue from line union select queue from clock) q
)
select g.job_id::text, 'made to agree with its job'
from (table held union table clock union table lot union table line) g cross join woken
