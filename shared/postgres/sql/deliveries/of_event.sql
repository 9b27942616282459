-- An event's deliveries to an owner's endpoints, or one of them. Index: delivery_event.
select d.id::text, d.endpoint_id::text, d.event_id::text, d.state
from weirkeeper.delivery d
where d.owner_id = %(owner_id)s
  and (%(event_id)s::uuid is null or d.event_id = %(event_id)s)
  and (%(id)s::bigint is null or d.id = %(id)s)
  and (%(event_id)s::uuid is not null or %(id)s::bigint is not null)
order by d.id
