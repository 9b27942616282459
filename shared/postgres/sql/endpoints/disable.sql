-- Disables an endpoint. Locks: its row, its key.
select weirkeeper.disable_endpoint(%(id)s, %(reason)s)
