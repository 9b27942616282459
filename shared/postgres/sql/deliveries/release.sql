-- Gives a lease back without an attempt: the fault was ours. Locks: the endpoint. Index: endpoint_pkey.
update weirkeeper.endpoint e
set busy_until = null, lease_token = null
from weirkeeper.delivery d
where d.id = %(id)s and e.id = d.endpoint_id and e.lease_token = %(token)s
returning e.id
