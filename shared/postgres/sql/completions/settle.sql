-- Finishes everything else: failures, snoozes, discards, interruptions. One row of the log
-- each; then final (delay null), ready at once (0) or scheduled (> 0), in one transaction with the
-- final notice and the release of uniqueness. A job whose end was asked for meanwhile does not wait
-- again: it is cancelled. Places of concurrency keys as in completions/complete; a job that is ready at
-- once keeps its own. Fenced by job, epoch and token. Locks: the rows of running. Index: running_pkey.
with verdict as materialized (
  select v.*
  from unnest(
    %(job_ids)s::bigint[], %(tokens)s::bigint[], %(outcomes)s::text[], %(states)s::text[],
    %(delays)s::double precision[], %(spent)s::boolean[], %(errors)s::text[], %(causes)s::text[],
    %(evidence)s::text[], %(results)s::text[], %(started)s::double precision[]
  ) as v (job_id, token, outcome, state, delay, spent, error, cause, evidence, result, started_at)
), gone as (
  delete from weirkeeper.running r
  using verdict v
  where r.job_id = v.job_id and r.epoch = %(epoch)s and r.token = v.token
  returning r.job_id, r.run, r.attempt + v.spent::integer as attempt, r.queue, r.kind, r.priority,
            r.key, r.claimed_at, v.outcome, v.state, v.delay, v.error, v.cause, v.evidence, v.result,
            v.started_at, r.cancel_requested_at is not null and v.delay is not null as ends
), ended as (
  select g.job_id, case when g.ends then 'cancelled' else g.state end as state
  from gone g where g.delay is null or g.ends
), logged as (
  insert into weirkeeper.attempt
    (job_id, run, attempt, outcome, state, error, cause, evidence, result, epoch, claimed_at,
     started_at)
  select g.job_id, g.run, g.attempt,
         case when g.ends and g.outcome in ('snoozed', 'interrupted') then 'cancelled'
              else g.outcome end,
         case when g.ends then 'cancelled' else g.state end, g.error, g.cause, g.evidence::jsonb,
         g.result::jsonb, %(epoch)s, g.claimed_at, to_timestamp(g.started_at)
  from gone g
), later as (
  insert into weirkeeper.scheduled (job_id, run_at, queue, kind, priority, attempt, run, why)
  select g.job_id, clock_timestamp() + make_interval(secs => g.delay), g.queue, g.kind,
         g.priority, g.attempt, g.run, case g.outcome when 'snoozed' then 'snooze' else 'retry' end
  from gone g where g.delay > 0 and not g.ends
), again as (
  insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, key, owner_id)
  select g.queue, g.kind, g.priority, g.job_id, g.attempt, g.run, g.key,
         weirkeeper.fair_owner(g.kind, g.job_id)
  from gone g where g.delay <= 0 and not g.ends order by g.job_id
  returning queue
), freed as (
  select array_agg(g.key) as keys from gone g
  where g.key is not null and (g.ends or g.delay is null or g.delay > 0)
)
select (select count(*) from gone)::integer,
       (select f.keys from freed f),
       (select weirkeeper.tell_final(array_agg(e.job_id)) from ended e),
       (select sum(weirkeeper.release_unique(l.ids, l.state))
        from (select array_agg(e.job_id) as ids, e.state from ended e
              where e.state <> 'completed' group by e.state) l),
       (select count(weirkeeper.wake_queue(a.queue)) from (select distinct queue from again) a),
       (select weirkeeper.unpark(f.keys) from freed f where %(alone)s and f.keys is not null)
