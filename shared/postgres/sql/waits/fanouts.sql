-- Where the events that callers wait for went: job id by subscription, null = not yet. LATERAL with
-- LIMIT keeps each look-up a look-up. Locks nothing. Indexes: event_pkey, event_fanout_pkey.
select wanted.id::text, f.jobs
from unnest(%(ids)s::uuid[]) as wanted (id)
left join lateral (
  select e.id from weirkeeper.event e where e.id = wanted.id limit 1) e on true
left join lateral (
  select o.event_id, o.jobs from weirkeeper.event_fanout o where o.event_id = wanted.id limit 1
) f on true
where e.id is not null or f.event_id is not null
