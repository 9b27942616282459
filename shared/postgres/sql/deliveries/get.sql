-- One delivery to an endpoint of an owner. Index: delivery_pkey.
select d.id::text, d.endpoint_id::text, d.event_id::text, d.state
from weirkeeper.delivery d
where d.id = %(id)s and d.owner_id = %(owner_id)s
