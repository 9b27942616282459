-- Where an event stands: its number in line, whether it failed, when it was fanned out; no row = there
-- is no such event. Locks nothing. Indexes: event_pkey, event_failure_pkey, event_fanout_pkey; the
-- number is looked for in the line only while the event is nowhere else.
select p.seq, x.event_id is not null, f.fanned_out_at
from weirkeeper.event e
left join weirkeeper.event_failure x on x.event_id = e.id
left join weirkeeper.event_fanout f on f.event_id = e.id
left join lateral (
  select n.seq from weirkeeper.event_pending n
  where f.event_id is null and x.event_id is null and n.event_id = e.id limit 1
) p on true
where e.id = %(id)s::uuid
