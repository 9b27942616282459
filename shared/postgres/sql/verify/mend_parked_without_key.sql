-- Puts such jobs in line, with fresh numbers. Indexes: parked_pkey, key_pkey.
with gone as (
  delete from weirkeeper.parked p
  where p.job_id = any (%(ids)s::text[]::bigint[])
    and not exists (select from weirkeeper.key k where k.name = p.key)
  returning p.*
), placed as (
  insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, owner_id)
  select g.queue, g.kind, g.priority, g.job_id, g.attempt, g.run,
         weirkeeper.fair_owner(g.kind, g.job_id)
  from gone g order by g.job_id
  returning job_id, queue
), woken as (
  select count(weirkeeper.wake_queue(q.queue)) from (select distinct queue from placed) q
)
select p.job_id::text, 'put in line' from placed p cross join woken
