-- Events that were not fanned out and stand in no line: no subscriber will ever hear of them. Locks
-- nothing. Indexes: event_fanout_pkey, event_failure_pkey.
select e.id::text, 'of type ' || e.type
from weirkeeper.event e
where not exists (select from weirkeeper.event_fanout f where f.event_id = e.id)
  and not exists (select from weirkeeper.event_failure x where x.event_id = e.id)
  and not exists (select from weirkeeper.event_pending p where p.event_id = e.id)
limit %(limit)s
