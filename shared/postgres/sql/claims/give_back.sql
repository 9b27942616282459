-- Puts claims that were never started back in line, with a fresh number, no attempt spent, no
-- entry in the log; a place of a concurrency key goes with them. One whose end was asked for meanwhile ends here. Locks: the rows.
-- Index: running_pkey.
with gone as (
  delete from weirkeeper.running r
  where r.job_id = any (%(job_ids)s::bigint[]) and r.epoch = %(epoch)s
    and r.token = any (%(tokens)s::bigint[])
  returning r.job_id, r.queue, r.kind, r.priority, r.attempt, r.run, r.claimed_at,
            r.key, r.cancel_requested_at is not null as ends
), placed as (
  insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, key, owner_id)
  select g.queue, g.kind, g.priority, g.job_id, g.attempt, g.run, g.key,
         weirkeeper.fair_owner(g.kind, g.job_id)
  from gone g where not g.ends order by g.job_id
  returning queue
), logged as (
  insert into weirkeeper.attempt
    (job_id, run, attempt, outcome, state, error, cause, epoch, claimed_at)
  select g.job_id, g.run, g.attempt, 'cancelled', 'cancelled',
         'cancelled by hand before it was started', 'by_hand', %(epoch)s, g.claimed_at
  from gone g where g.ends
)
select (select count(*) from gone)::integer,
       (select weirkeeper.tell_final(array_agg(g.job_id)) from gone g where g.ends),
       (select weirkeeper.release_unique(array_agg(g.job_id), 'cancelled')
        from gone g where g.ends having count(*) > 0),
       (select count(weirkeeper.wake_queue(p.queue)) from (select distinct queue from placed) p),
       (select weirkeeper.unpark(array_agg(g.key))
        from gone g where g.ends and g.key is not null having count(*) > 0)
