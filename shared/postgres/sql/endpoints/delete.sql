-- Removes an endpoint with its secrets, deliveries and replays. Locks: their rows.
-- Index: endpoint_pkey, those of what refers to it.
delete from weirkeeper.endpoint e where e.id = %(id)s and e.owner_id = %(owner_id)s
returning e.id::text
