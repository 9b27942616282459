-- Jobs as they stand: where a row is, is its state. Args are not read.
-- Indexes: job_pkey, ready_job_id_key, scheduled_pkey, parked_pkey, running_pkey, attempt_pkey.
select j.id::text, j.kind, j.queue,
       case
         when r.job_id is not null then 'running'
         when w.job_id is not null then case when w.attempt > 0 then 'retryable' else 'pending' end
         else coalesce(a.state, 'pending')
       end,
       coalesce(r.attempt, w.attempt, a.attempt, 0), j.max_attempts, j.priority, j.created_at,
       w.run_at, j.owner_id, coalesce(j.tags, '{}'), r.progress
from weirkeeper.job j
left join weirkeeper.running r on r.job_id = j.id
left join lateral (
  select q.job_id, q.attempt, null::timestamptz as run_at
  from weirkeeper.ready q where q.job_id = j.id
  union all
  select s.job_id, s.attempt, s.run_at from weirkeeper.scheduled s where s.job_id = j.id
  union all
  select p.job_id, p.attempt, null from weirkeeper.parked p where p.job_id = j.id
  limit 1
) w on true
left join lateral (
  select l.state, l.attempt from weirkeeper.attempt l where l.job_id = j.id
  order by l.run desc limit 1
) a on true
where j.id = any (%(ids)s)
order by j.id desc
