-- Parks those of a claim's jobs whose concurrency key has no place for them. Locks: the rows of running,
-- then the keys, in order of their names. Indexes: running_pkey, job_pkey, key_pkey, parked_oldest,
-- running_key, ready_key.
select weirkeeper.admit(%(job_ids)s::bigint[], %(epoch)s::bigint, %(token)s::bigint)
