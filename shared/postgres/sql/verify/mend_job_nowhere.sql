-- Puts such jobs back in line (one that was enqueued for later and never tried: where it waits for its time),
-- and says so in their log, as a rescue would; no attempt is spent. The
-- entry comes first: a transaction has an id before it draws a number of the line.
-- Indexes: job_pkey, attempt_pkey, ready_job_id_key, scheduled_pkey.
with lost as materialized (
  select j.*, coalesce(a.attempt, 0) as tries, coalesce(a.run, 0) + 1 as next_run,
         a.run is null and coalesce(j.run_at > clock_timestamp(), false) as later
  from weirkeeper.job j
  left join lateral (
    select l.attempt, l.run, l.state from weirkeeper.attempt l
    where l.job_id = j.id order by l.run desc limit 1
  ) a on true
  where j.id = any (%(ids)s::text[]::bigint[])
    and not exists (select from weirkeeper.ready w where w.job_id = j.id)
    and not exists (select from weirkeeper.scheduled s where s.job_id = j.id)
    and not exists (select from weirkeeper.parked p where p.job_id = j.id)
    and not exists (select from weirkeeper.running r where r.job_id = j.id)
    and coalesce(a.state, '') not in ('completed', 'discarded', 'cancelled')
), logged as (
  insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, error, cause)
  select l.id, l.next_run, l.tries, 'rescued', case when l.tries > 0 then 'retryable' else 'pending' end,
         'it stood in no line', 'verify'
  from lost l
  returning job_id, attempt, run
), placed as (
  insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, owner_id)
  select l.queue, l.kind, l.priority, g.job_id, g.attempt, g.run,
         weirkeeper.fair_owner(l.kind, g.job_id)
  from logged g join lost l on l.id = g.job_id
  where not l.later
  returning job_id, queue
), put_off as (
  insert into weirkeeper.scheduled (job_id, run_at, queue, kind, priority, attempt, run, why)
  select g.job_id, l.run_at, l.queue, l.kind, l.priority, g.attempt, g.run, 'delay'
  from logged g join lost l on l.id = g.job_id
  where l.later
  returning job_id, queue
), woken as (
  select count(weirkeeper.wake_queue(q.queue)) 
  from (select queue from placed union select queue from put_off) q
)
select p.job_id::text, p.said
from (select job_id, 'put in line' as said from placed
      union all select job_id, 'put off until its time' from put_off) p
cross join woken
