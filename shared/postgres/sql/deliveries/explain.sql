-- How an event stands with an endpoint: the event, the endpoint, the delivery, its last attempt and the
-- last run of its job; without a delivery, what became of the job that was to make it.
-- Indexes: event_pkey, endpoint_pkey, delivery_event_id_endpoint_id_key, attempt_pkey, key_pkey, job_pkey.
select v.type, t.exposure, v.occurred_at, f.event_id is not null,
       e.url, e.event_types, e.enabled, e.disabled_reason, e.disabled_at, e.created_at,
       case when e.busy_until > clock_timestamp() then e.busy_until end,
       case when e.not_before > clock_timestamp() then e.not_before end,
       d.id::text, d.state, d.attempts, d.tries, d.next_at, d.job_id::text, d.ended_at,
       last.code, last.status, last.result, last.phases,
       e.ordering = 'strict' and exists (
         select from weirkeeper.delivery o
         where o.endpoint_id = e.id and o.state = 'pending' and o.job_id < d.job_id),
       e.failing_since, e.contact, e.rate,
       case when k.open_at > clock_timestamp() and isfinite(k.open_at) then k.open_at end,
       coalesce(ran.outcome in ('failed', 'crashed', 'timeout')
         and (last.finished_at is null or last.finished_at < ran.begun_at), false),
       case when f.event_id is null then null
            when made.job_id is null then 'nobody'
            when made.there is null then 'completed'
            else coalesce(made.state, 'pending') end,
       made.job_id::text
from weirkeeper.endpoint e
left join weirkeeper.event v on v.id = %(event_id)s and v.owner_id = e.owner_id
left join weirkeeper.event_type t on t.name = v.type
left join weirkeeper.event_fanout f on f.event_id = v.id
left join weirkeeper.delivery d on d.endpoint_id = e.id and d.event_id = %(event_id)s
left join lateral (
  select a.code, a.status, a.result, a.phases, a.finished_at from weirkeeper.delivery_attempt a
  where a.delivery_id = d.id order by a.number desc limit 1) last on true
left join lateral (
  select a.outcome, coalesce(a.started_at, a.claimed_at, a.finished_at) as begun_at
  from weirkeeper.attempt a where a.job_id = d.job_id order by a.run desc limit 1) ran on true
left join weirkeeper.key k on k.name = weirkeeper.endpoint_key(e.id)
left join lateral (
  select g.job_id, j.id as there, (
    select a.state from weirkeeper.attempt a where a.job_id = g.job_id order by a.run desc limit 1) as state
  from (select (f.jobs ->> 'webhook.fanout')::bigint as job_id) g
  left join weirkeeper.job j on j.id = g.job_id) made on true
where e.id = %(id)s and e.owner_id = %(owner_id)s
