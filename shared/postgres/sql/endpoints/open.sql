-- Has an endpoint's deliveries claimed by what it says now. Locks: its key.
select weirkeeper.open_endpoint(%(id)s)
