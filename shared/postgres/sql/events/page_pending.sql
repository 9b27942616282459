-- One window of events that wait for the relay, newest first: at most %(window)s rows below %(below)s
-- are looked at. Always at least one row: the last column is where the window ended, null = nothing
-- was left. Locks nothing. Indexes: event_pending_pkey backwards, event_pkey.
with looked as materialized (
  select p.seq, p.event_id from weirkeeper.event_pending p
  where p.seq < %(below)s::bigint order by p.seq desc limit %(window)s
)
select f.id::text, f.type, f.owner_id, f.subject, f.occurred_at, 'pending', 0,
       (select min(l.seq) from looked l)::text
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
  order by l.seq desc limit %(limit)s
) f on true
