-- How the jobs that callers wait for stand, with the result of completed ones: where a row is, is
-- its state, and the newest row of the log only counts when the job waits and runs nowhere (a
-- manual retry). Locks nothing. Indexes: job_pkey, running_pkey, ready_job_id_key, scheduled_pkey,
-- parked_pkey, attempt_pkey.
select j.id::text,
       case
         when r.job_id is not null then 'running'
         when w.attempt > 0 then 'retryable'
         when w.attempt = 0 then 'pending'
         else coalesce(a.state, 'pending')
       end,
       case when w.attempt is null and a.state = 'completed' then a.result end, r.progress
from unnest(%(ids)s::bigint[]) as wanted (id)
cross join lateral (select b.id from weirkeeper.job b where b.id = wanted.id limit 1) j
left join weirkeeper.running r on r.job_id = j.id
left join lateral (
  select q.attempt from weirkeeper.ready q where q.job_id = j.id
  union all
  select s.attempt from weirkeeper.scheduled s where s.job_id = j.id
  union all
  select p.attempt from weirkeeper.parked p where p.job_id = j.id
  limit 1
) w on true
left join lateral (
  select l.state, l.result from weirkeeper.attempt l where l.job_id = j.id
  order by l.run desc limit 1
) a on true
