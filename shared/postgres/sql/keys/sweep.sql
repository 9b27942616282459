-- The net: lets jobs go on whose concurrency key is open and has a place for them. Locks: those keys, in
-- order of their names. Indexes: parked_oldest, key_pkey, running_key, ready_key.
select weirkeeper.unpark(array(select s.name from weirkeeper.stuck_keys() s (name)))
