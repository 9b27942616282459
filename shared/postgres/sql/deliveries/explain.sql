-- How an event stands with an endpoint: the event, the endpoint, the delivery and its last attempt.
-- Indexes: event_pkey, endpoint_pkey, delivery_endpoint_id_event_id_key.
select v.type, t.exposure, v.occurred_at, f.event_id is not null,
       e.url, e.event_types, e.enabled, e.disabled_reason, e.disabled_at, e.created_at,
       case when e.busy_until > clock_timestamp() then e.busy_until end,
       case when e.not_before > clock_timestamp() then e.not_before end,
       d.id::text, d.state, d.attempts, d.tries, d.next_at, d.job_id::text, d.ended_at,
       last.code, last.status, last.result, last.phases,
       e.ordering = 'strict' and exists (
         select from weirkeeper.delivery o
         where o.endpoint_id = e.id and o.state = 'pending' and o.job_id < d.job_id),
       e.failing_since, e.contact
from weirkeeper.endpoint e
left join weirkeeper.event v on v.id = %(event_id)s and v.owner_id = e.owner_id
left join weirkeeper.event_type t on t.name = v.type
left join weirkeeper.event_fanout f on f.event_id = v.id
left join weirkeeper.delivery d on d.endpoint_id = e.id and d.event_id = %(event_id)s
left join lateral (
  select a.code, a.status, a.result, a.phases from weirkeeper.delivery_attempt a
  where a.delivery_id = d.id order by a.number desc limit 1) last on true
where e.id = %(id)s and e.owner_id = %(owner_id)s
