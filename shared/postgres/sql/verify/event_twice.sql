-- Jobs that stand for an event beside the one that its fan-out names for that subscription: the event
-- would be delivered twice. A replay's job is meant to; where the fan-out names one of those, it names
-- the newest. Locks nothing. Indexes: event_fanout_pkey, job_pkey.
select j.id::text, 'of ' || j.kind || ' for event ' || j.event_id || ', whose fan-out names '
       || coalesce('job ' || (f.jobs ->> j.kind), 'none')
from weirkeeper.job j
join weirkeeper.event_fanout f on f.event_id = j.event_id
left join weirkeeper.job named on named.id = (f.jobs ->> j.kind)::bigint
where f.jobs ->> j.kind is distinct from j.id::text
  and not coalesce(j.tags @> '{replay}', false)
  and (f.jobs ->> j.kind is null or named.id is not null)
  and not coalesce(named.tags @> '{replay}', false)
limit %(limit)s
