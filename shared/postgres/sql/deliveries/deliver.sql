-- Puts an event on its way to an endpoint, once. Locks: the delivery, its key.
select weirkeeper.deliver(%(endpoint_id)s, %(event_id)s, %(body)s, %(trigger)s, %(priority)s)::text
