-- One window of events that were fanned out, the last first; as events/page_pending.
-- Locks nothing. Indexes: event_fanout_oldest backwards, event_pkey.
with looked as materialized (
  select o.fanned_out_at, o.event_id from weirkeeper.event_fanout o
  where (o.fanned_out_at, o.event_id) < (%(at)s::timestamptz, %(below)s::uuid)
  order by o.fanned_out_at desc, o.event_id desc limit %(window)s
)
select f.id::text, f.type, f.owner_id, f.subject, f.occurred_at, 'fanned_out', 0,
       (select l.event_id from looked l order by l.fanned_out_at, l.event_id limit 1)::text
from (select) one
left join lateral (
  select e.id, e.type, e.owner_id, e.subject, e.occurred_at
  from looked l
  cross join lateral (
    select o.id, o.type, o.owner_id, o.subject, o.occurred_at
    from weirkeeper.event o where o.id = l.event_id limit 1
  ) e
  where (%(types)s::text[] is null or e.type = any (%(types)s::text[]))
    and (%(subject)s::text is null or e.subject = %(subject)s::text)
    and (%(owner_id)s::text is null or e.owner_id = %(owner_id)s::text)
  order by l.fanned_out_at desc, l.event_id desc limit %(limit)s
) f on true
