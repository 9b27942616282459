-- How many more jobs of a capped queue may run. Locks: the queue's row, until the claim is committed.
-- `running` is small. Index: queue_pkey.
select weirkeeper.cap_room(%(queue)s)
