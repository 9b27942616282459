-- One window of events whose fan-out failed, in order of their ids; as events/page_pending.
-- Locks nothing. Indexes: event_failure_pkey backwards, event_pkey.
with looked as materialized (
  select x.event_id, x.failures, x.poisoned_at from weirkeeper.event_failure x
  where x.event_id < %(below)s::uuid order by x.event_id desc limit %(window)s
)
select f.id::text, f.type, f.owner_id, f.subject, f.occurred_at,
       case when f.poisoned_at is null then 'failing' else 'poisoned' end, f.failures,
       (select l.event_id from looked l order by l.event_id limit 1)::text
from (select) one
left join lateral (
  select e.id, e.type, e.owner_id, e.subject, e.occurred_at, l.failures, l.poisoned_at
  from looked l
  cross join lateral (
    select o.id, o.type, o.owner_id, o.subject, o.occurred_at
    from weirkeeper.event o where o.id = l.event_id limit 1
  ) e
  where (%(types)s::text[] is null or e.type = any (%(types)s::text[]))
    and (%(subject)s::text is null or e.subject = %(subject)s::text)
    and (%(owner_id)s::text is null or e.owner_id = %(owner_id)s::text)
    and (%(poisoned)s::boolean is null or %(poisoned)s::boolean = (l.poisoned_at is not null))
  order by l.event_id desc limit %(limit)s
) f on true
