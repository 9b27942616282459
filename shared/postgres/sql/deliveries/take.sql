-- Takes the lease of a delivery's endpoint, with what is to be sent where; or tells why not.
-- Locks: the endpoint. Indexes: delivery_pkey, endpoint_pkey, endpoint_secret_pkey.
select answer, event_id, event_type, body, attempts, owner_id, trigger, begun_at, endpoint_id, url,
       headers, format, signature, schedule, ordering, seconds, sealed
from weirkeeper.take_delivery(%(id)s, %(seconds)s, %(token)s)
