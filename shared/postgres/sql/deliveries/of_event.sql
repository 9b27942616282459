-- An event's deliveries to an owner's endpoints. Index: delivery_event_id_endpoint_id_key.
select d.id::text, d.endpoint_id::text, d.event_id::text, d.state
from weirkeeper.delivery d
where d.event_id = %(event_id)s and d.owner_id = %(owner_id)s
order by d.id
