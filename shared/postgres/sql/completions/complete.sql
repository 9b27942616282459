-- Finishes plain successes: the hot path. Fenced by job, epoch and token. Locks: the rows of
-- running. Index: running_pkey. array_position instead of a join: hash and merge joins are off in
-- this session, and the arrays are short. Places of concurrency keys go to the next jobs at once, or,
-- when more follows in this transaction, are told.
with gone as (
  delete from weirkeeper.running r
  where r.job_id = any (%(job_ids)s::bigint[]) and r.epoch = %(epoch)s
    and r.token = any (%(tokens)s::bigint[])
  returning r.job_id, r.run, r.attempt, r.claimed_at, r.key
), logged as (
  insert into weirkeeper.attempt
    (job_id, run, attempt, outcome, state, epoch, claimed_at, started_at)
  select g.job_id, g.run, g.attempt + 1, 'completed', 'completed', %(epoch)s, g.claimed_at,
         (%(started)s::timestamptz[])[array_position(%(job_ids)s::bigint[], g.job_id)]
  from gone g
)
select weirkeeper.tell_final(array_agg(g.job_id)),
       array_agg(g.key) filter (where g.key is not null),
       case when %(alone)s and count(g.key) > 0
            then weirkeeper.unpark(array_agg(g.key) filter (where g.key is not null)) end
from gone g
