-- What an endpoint of an owner wants. Index: endpoint_pkey.
select e.event_types from weirkeeper.endpoint e
where e.id = %(id)s and e.owner_id = %(owner_id)s
