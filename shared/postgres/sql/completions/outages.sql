-- Since when the dependency of these jobs has been away, in seconds: from the first of the runs that
-- found it so, one after the other up to the last run. Interruptions in between do not count.
-- Locks nothing. Index: attempt_pkey.
select v.job_id,
       extract(epoch from clock_timestamp() - min(a.finished_at))::double precision as seconds
from unnest(%(job_ids)s::bigint[]) as v (job_id)
join weirkeeper.attempt a
  on a.job_id = v.job_id and a.outcome = 'snoozed' and a.cause = 'outage'
where a.run > coalesce(
  (select max(other.run) from weirkeeper.attempt other
   where other.job_id = v.job_id and other.outcome <> 'interrupted'
     and (other.outcome <> 'snoozed' or other.cause is distinct from 'outage')), 0)
group by v.job_id
