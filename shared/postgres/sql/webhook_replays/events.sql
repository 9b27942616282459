-- The next events of a replay in order, and whether they are still to be sent: an event may be pruned by now,
-- its endpoint want others, its delivery have arrived. Each is looked up, whatever is known of the tables.
-- Indexes: webhook_replay_event_pkey, event_pkey, delivery_endpoint_id_event_id_key.
select l.seq, v.id::text, v.type, v.subject,
       to_char(v.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), v.data::text,
       coalesce(v.type = any (%(types)s) and (not %(failed_only)s or d.state = 'failed'), false)
from (
  select e.seq, e.event_id from weirkeeper.webhook_replay_event e
  where e.replay_id = %(id)s and e.seq > %(after_seq)s
  order by e.seq
  limit %(limit)s
) l
left join lateral (select * from weirkeeper.event o where o.id = l.event_id offset 0) v on true
left join lateral (
  select o.state from weirkeeper.delivery o
  where o.endpoint_id = %(endpoint_id)s and o.event_id = l.event_id
  offset 0
) d on true
order by l.seq
