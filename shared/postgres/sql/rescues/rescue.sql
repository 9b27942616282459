-- Takes the jobs of dead owners back. A job that had started spends an attempt, and is discarded
-- when that was its last; one that was only claimed spends none, unless it has been lost so, by the
-- log, as often as it may be tried, which ends loops. How often it was claimed says nothing: it may
-- have been given back. A place of a concurrency key goes with a job that waits
-- again. One whose end was asked for is cancelled. Locks: the
-- rows, in order, SKIP LOCKED: a finish that came first wins, and then there is no row.
-- Indexes: job_pkey, attempt_pkey.
with lost as materialized (
  select r.ctid as row_id
  from weirkeeper.running r
  where r.epoch = any (%(epochs)s::bigint[])
  order by r.job_id
  for update skip locked
), gone as (
  delete from weirkeeper.running r
  where r.ctid = any (array(select l.row_id from lost l))
  returning r.*
), judged as (
  select g.*, g.attempt + spent.n as tries,
         g.cancel_requested_at is not null as cancelled,
         spent.n = 1 and g.attempt + 1 >= coalesce(j.max_attempts, 1)
           or g.cancel_requested_at is not null as over
  from gone g
  left join lateral (select max_attempts from weirkeeper.job where id = g.job_id) j on true
  cross join lateral (
    select (g.started_at is not null or coalesce(j.max_attempts, 1) <= (
             select count(*) from weirkeeper.attempt a
             where a.job_id = g.job_id and a.outcome = 'rescued' and a.started_at is null
           ))::integer as n
  ) spent
), logged as (
  insert into weirkeeper.attempt
    (job_id, run, attempt, outcome, state, error, cause, epoch, claimed_at, started_at)
  select d.job_id, d.run, d.tries, 'rescued',
         case when d.cancelled then 'cancelled' when d.over then 'discarded'
              when d.tries > 0 then 'retryable' else 'pending' end,
         'the process that ran it died', 'owner_dead', d.epoch, d.claimed_at, d.started_at
  from judged d
), again as (
  insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, key, owner_id)
  select d.queue, d.kind, d.priority, d.job_id, d.tries, d.run, d.key,
         weirkeeper.fair_owner(d.kind, d.job_id)
  from judged d where not d.over order by d.job_id
  returning queue
)
select (select count(*) from gone)::integer,
       (select weirkeeper.tell_final(array_agg(d.job_id)) from judged d where d.over),
       (select sum(weirkeeper.release_unique(l.ids, l.state))
        from (select array_agg(d.job_id) as ids,
                     case when d.cancelled then 'cancelled' else 'discarded' end as state
              from judged d where d.over group by 2) l),
       (select count(weirkeeper.wake_queue(a.queue)) from (select distinct queue from again) a),
       (select weirkeeper.unpark(array_agg(d.key))
        from judged d where d.over and d.key is not null having count(*) > 0)
