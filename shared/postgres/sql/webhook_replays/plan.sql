-- Writes a plan that lists nothing yet. Index: endpoint_pkey.
insert into weirkeeper.webhook_replay (endpoint_id, owner_id, since, until, failed_only, total)
select e.id, e.owner_id, %(since)s, %(until)s, %(failed_only)s, 0
from weirkeeper.endpoint e
where e.id = %(id)s and e.owner_id = %(owner_id)s
returning id::text
