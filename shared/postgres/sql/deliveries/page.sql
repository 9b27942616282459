-- Deliveries of an endpoint, newest events first; those before a number are passed over in the index, by
-- a plan that does not know the number, too. Index: delivery_page.
select d.id::text, d.event_id::text, d.event_seq::text, d.event_type, d.trigger, d.state, d.job_id::text,
       d.attempts, d.tries, d.next_at, d.created_at, d.ended_at, last.code, last.status
from weirkeeper.delivery d
left join lateral (
  select a.code, a.status from weirkeeper.delivery_attempt a
  where a.delivery_id = d.id order by a.number desc limit 1) last on true
where d.endpoint_id = %(id)s and d.owner_id = %(owner_id)s
  and (%(state)s::text is null or d.state = %(state)s)
  and d.event_seq < coalesce(%(before)s::bigint, 9223372036854775807)
order by d.event_seq desc
limit %(limit)s
