-- Gives places of concurrency keys to the next jobs. Locks: the keys, in order of their names.
-- Indexes: key_pkey, parked_oldest, running_key, ready_key.
select weirkeeper.unpark(%(keys)s::text[])
