-- Lets jobs go on whose concurrency key has opened. Locks: the keys, SKIP LOCKED: every process may do it.
-- Indexes: key_opens, key_pkey, parked_oldest, running_key, ready_key.
select weirkeeper.open_keys()
