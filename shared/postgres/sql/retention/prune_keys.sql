-- One batch of concurrency keys that nobody uses; see the function (0009). Locks: the rows, SKIP LOCKED.
-- Indexes: key_pkey, parked_oldest, running_key, ready_key.
select weirkeeper.prune_keys(%(size)s)
