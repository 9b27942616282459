-- Takes the lease of a delivery's endpoint, with what is to be sent where; or tells why not. As text, but
-- for what is bytes: nothing else is to be looked up by whoever reads it.
-- Locks: the endpoint. Indexes: delivery_pkey, endpoint_pkey, endpoint_secret_pkey.
select answer, event_id, event_type, body, attempts::text, owner_id, trigger,
       extract(epoch from begun_at)::text, endpoint_id, url, headers::text, format, signature,
       array_to_json(schedule)::text, ordering, seconds::text, sealed
from weirkeeper.take_delivery(%(id)s, %(seconds)s, %(token)s)
