-- Locks an endpoint of an owner; no row = there is none. Locks: the row. Index: endpoint_pkey.
select e.id, e.enabled from weirkeeper.endpoint e
where e.id = %(id)s and e.owner_id = %(owner_id)s
for update
