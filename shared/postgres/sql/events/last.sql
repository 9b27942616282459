-- How many of the last events that were fanned out are of each type. Locks nothing.
-- Indexes: event_fanout_oldest backwards, event_pkey.
select e.type, count(*)::integer
from (
  select o.event_id from weirkeeper.event_fanout o
  order by o.fanned_out_at desc, o.event_id desc limit %(count)s
) l
cross join lateral (
  select n.type from weirkeeper.event n where n.id = l.event_id limit 1
) e
group by e.type
