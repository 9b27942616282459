-- Finishes everything else: failures, snoozes, discards, results, interruptions. One row of the log
-- each; then final (delay null), ready at once (0) or scheduled (> 0), in one transaction with the
-- final notice. Fenced by job, epoch and token. Locks: the rows of running. Index: running_pkey.
with verdict as materialized (
  select v.*
  from unnest(
    %(job_ids)s::bigint[], %(tokens)s::bigint[], %(outcomes)s::text[], %(states)s::text[],
    %(delays)s::double precision[], %(spent)s::boolean[], %(errors)s::text[], %(causes)s::text[],
    %(evidence)s::text[], %(results)s::text[], %(started)s::timestamptz[]
  ) as v (job_id, token, outcome, state, delay, spent, error, cause, evidence, result, started_at)
), gone as (
  delete from weirkeeper.running r
  using verdict v
  where r.job_id = v.job_id and r.epoch = %(epoch)s and r.token = v.token
  returning r.job_id, r.run, r.attempt + v.spent::integer as attempt, r.queue, r.kind, r.priority,
            r.claimed_at, v.outcome, v.state, v.delay, v.error, v.cause, v.evidence, v.result,
            v.started_at
), logged as (
  insert into weirkeeper.attempt
    (job_id, run, attempt, outcome, state, error, cause, evidence, result, epoch, claimed_at,
     started_at)
  select g.job_id, g.run, g.attempt, g.outcome, g.state, g.error, g.cause, g.evidence::jsonb,
         g.result::jsonb, %(epoch)s, g.claimed_at, g.started_at
  from gone g
), later as (
  insert into weirkeeper.scheduled (job_id, run_at, queue, kind, priority, attempt, run, why)
  select g.job_id, clock_timestamp() + make_interval(secs => g.delay), g.queue, g.kind,
         g.priority, g.attempt, g.run, case g.outcome when 'snoozed' then 'snooze' else 'retry' end
  from gone g where g.delay > 0
), again as (
  insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run)
  select g.queue, g.kind, g.priority, g.job_id, g.attempt, g.run
  from gone g where g.delay <= 0 order by g.job_id
  returning queue
)
select (select count(*) from gone)::integer,
       (select weirkeeper.tell_final(array_agg(g.job_id)) from gone g where g.delay is null),
       (select count(weirkeeper.wake_queue(a.queue)) from (select distinct queue from again) a)
