-- Takes what stands in line for an endpoint up to an event, oldest first; waits for a fan-out that has
-- taken a part of it, so that what comes of this one comes behind.
-- Locks: the rows, in order of events. Indexes: endpoint_line_pkey, event_pkey.
with due as materialized (
  select l.event_seq, l.event_id from weirkeeper.endpoint_line l
  where l.endpoint_id = %(endpoint_id)s
    and l.event_seq <= (select e.seq from weirkeeper.event e where e.id = %(event_id)s)
  order by l.event_seq
  for update
), taken as (
  delete from weirkeeper.endpoint_line l
  using due d where l.endpoint_id = %(endpoint_id)s and l.event_seq = d.event_seq
)
select d.event_id::text from due d order by d.event_seq
