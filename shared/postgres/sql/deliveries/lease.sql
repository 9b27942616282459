-- Takes the lease of a delivery's endpoint, or tells why not. Locks: the endpoint.
select weirkeeper.lease_endpoint(%(id)s, %(seconds)s, %(token)s)
