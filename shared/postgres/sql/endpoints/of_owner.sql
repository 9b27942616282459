-- Endpoints of an owner that take new events: enabled ones, and those that were paused by hand, for
-- which deliveries are held. Index: endpoint_owner.
select e.id, e.event_types, e.format, e.ordering = 'strict'
from weirkeeper.endpoint e
where e.owner_id = %(owner_id)s and (e.enabled or e.disabled_reason = 'manual')
order by e.id
