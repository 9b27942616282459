-- Enables an endpoint. Locks: its row, its key.
select weirkeeper.enable_endpoint(%(id)s)
