-- Puts claims that were never started back in line, with a fresh number, no attempt spent, no
-- entry in the log. Locks: the rows. Index: running_pkey.
with gone as (
  delete from weirkeeper.running r
  where r.job_id = any (%(job_ids)s::bigint[]) and r.epoch = %(epoch)s
    and r.token = any (%(tokens)s::bigint[])
  returning r.job_id, r.queue, r.kind, r.priority, r.attempt, r.run
), placed as (
  insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run)
  select g.queue, g.kind, g.priority, g.job_id, g.attempt, g.run from gone g order by g.job_id
  returning queue
)
select (select count(*) from gone)::integer, weirkeeper.wake_queue(p.queue)
from (select distinct queue from placed) p
