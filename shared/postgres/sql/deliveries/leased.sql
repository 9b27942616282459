-- What is to be sent where, read under the lease, so that an edit holds from the next attempt on.
-- Indexes: delivery_pkey, endpoint_pkey.
select d.event_id::text, d.event_type, d.body, d.attempts, d.owner_id, d.trigger, d.begun_at,
       e.id::text, e.url, e.headers, e.format, e.signature, e.schedule,
       extract(epoch from e.busy_until - clock_timestamp())::double precision
from weirkeeper.delivery d
join weirkeeper.endpoint e on e.id = d.endpoint_id
where d.id = %(id)s and e.lease_token = %(token)s
