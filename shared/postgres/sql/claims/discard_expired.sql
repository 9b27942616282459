-- Discards claims whose job was to start before now and was never tried (an entry in the log that
-- says more than "its owner died before it began"; so a retry by hand overrules the expiry). With its
-- notice, like any other end. Locks: the rows. Indexes: running_pkey, attempt_pkey.
with gone as (
  delete from weirkeeper.running r
  where r.job_id = any (%(job_ids)s::bigint[]) and r.epoch = %(epoch)s and r.token = %(token)s
    and (select true from weirkeeper.attempt a
         where a.job_id = r.job_id and weirkeeper.overrules_expiry(a.started_at, a.outcome, a.evidence)
         limit 1) is null
  returning r.job_id, r.run, r.attempt, r.epoch, r.claimed_at, r.key
), logged as (
  insert into weirkeeper.attempt
    (job_id, run, attempt, outcome, state, error, cause, epoch, claimed_at)
  select g.job_id, g.run, g.attempt, 'discarded', 'discarded',
         'it was to start before it expired, and did not', 'expired', g.epoch, g.claimed_at
  from gone g
), hit as (
  select coalesce(array_agg(g.job_id), '{}') as ids,
         array_agg(g.key) filter (where g.key is not null) as keys
  from gone g
)
select h.ids, weirkeeper.release_unique(h.ids, 'discarded'), weirkeeper.tell_final(h.ids),
       weirkeeper.unpark(h.keys)
from hit h
