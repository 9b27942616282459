-- Removes an endpoint with its secrets, deliveries, replays and what is in line for it. Locks: their rows.
-- Index: endpoint_pkey, endpoint_line_pkey, those of what refers to it.
with line as (
  delete from weirkeeper.endpoint_line l
  using weirkeeper.endpoint e
  where e.id = %(id)s and e.owner_id = %(owner_id)s and l.endpoint_id = e.id
)
delete from weirkeeper.endpoint e where e.id = %(id)s and e.owner_id = %(owner_id)s
returning e.id::text
