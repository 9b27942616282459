-- What the subscribers of an event got: their newest jobs as they stand. Locks nothing.
-- Indexes: event_fanout_pkey, job_pkey, running_pkey, ready_job_id_key, scheduled_pkey, parked_pkey,
-- attempt_pkey.
select named.subscription, named.job,
       case when named.job is null then 'skipped'
            when j.id is null then 'gone'
            when exists (select from weirkeeper.running r where r.job_id = j.id) then 'running'
            when w.attempt > 0 then 'retryable'
            when w.attempt = 0 then 'pending'
            else coalesce(weirkeeper.ended_state(j.id), 'pending') end
from weirkeeper.event_fanout f
cross join lateral jsonb_each_text(f.jobs) named (subscription, job)
left join weirkeeper.job j on j.id = named.job::bigint
left join lateral (
  select q.attempt from weirkeeper.ready q where q.job_id = j.id
  union all
  select s.attempt from weirkeeper.scheduled s where s.job_id = j.id
  union all
  select p.attempt from weirkeeper.parked p where p.job_id = j.id
  limit 1
) w on true
where f.event_id = %(id)s::uuid
order by named.subscription
