-- Finishes successes: the hot path. Results are in order of the ids, or NULL: nobody told anything.
-- Fenced by job, epoch and token. Locks: the rows of running. Index: running_pkey. width_bucket finds an
-- id's place in the sorted ids by halving: array_position walked half of 500 ids for each of them, and a
-- join costs more than either. Places of concurrency keys go to the next jobs at once, or, when more
-- follows in this transaction, are told.
with gone as (
  delete from weirkeeper.running r
  where r.job_id = any (%(job_ids)s::bigint[]) and r.epoch = %(epoch)s
    and r.token = any (%(tokens)s::bigint[])
  returning r.job_id, r.run, r.attempt, r.claimed_at, r.key
), logged as (
  insert into weirkeeper.attempt
    (job_id, run, attempt, outcome, state, epoch, claimed_at, started_at, result)
  select g.job_id, g.run, g.attempt + 1, 'completed', 'completed', %(epoch)s, g.claimed_at,
         to_timestamp((%(started)s::double precision[])
                      [width_bucket(g.job_id, %(job_ids)s::bigint[])]),
         (%(results)s::text[])[width_bucket(g.job_id, %(job_ids)s::bigint[])]::jsonb
  from gone g
)
select weirkeeper.tell_final(array_agg(g.job_id)),
       array_agg(g.key) filter (where g.key is not null),
       case when %(alone)s and count(g.key) > 0
            then weirkeeper.unpark(array_agg(g.key) filter (where g.key is not null)) end
from gone g
