-- Makes jobs rows of `running` again whose claims a crash of the server lost, under their tokens: children
-- run them. A claim raises `run`, so a row with the run before is one that nobody has claimed since; it
-- waits in `ready`, or in `scheduled` when its promotion was lost as well. A parked one is not taken: its
-- key has no place. Tells which have a concurrency key and no place of it yet, for claims/admit.
-- Locks: the rows. Indexes: ready_job_id_key, scheduled_pkey, job_pkey.
with mine as materialized (
  select m.job_id, m.run, m.token
  from unnest(%(job_ids)s::bigint[], %(runs)s::integer[], %(tokens)s::bigint[])
       as m (job_id, run, token)
), line as (
  delete from weirkeeper.ready w
  where w.job_id = any (%(job_ids)s::bigint[]) and w.queue = %(queue)s
    and w.run = (select m.run - 1 from mine m where m.job_id = w.job_id)
  returning w.job_id, w.kind, w.priority, w.attempt, w.key
), later as (
  delete from weirkeeper.scheduled s
  where s.job_id = any (%(job_ids)s::bigint[]) and s.queue = %(queue)s
    and s.run = (select m.run - 1 from mine m where m.job_id = s.job_id)
  returning s.job_id, s.kind, s.priority, s.attempt, null::text as key
), back as (
  select * from line union all select * from later
), held as (
  insert into weirkeeper.running
    (job_id, run, attempt, queue, kind, priority, epoch, token, key, started_at)
  select b.job_id, m.run, b.attempt, %(queue)s, b.kind, b.priority, %(epoch)s, m.token, b.key,
         clock_timestamp()
  from back b join mine m on m.job_id = b.job_id
)
select b.job_id,
       b.key is null and (select j.concurrency_key is not null from weirkeeper.job j where j.id = b.job_id)
from back b
