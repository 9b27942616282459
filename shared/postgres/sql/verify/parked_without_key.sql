-- Parked jobs whose concurrency key is not there: nothing would ever let them go on. A foreign key
-- forbids it; a restore, or a session that replicates, goes around that. Locks nothing.
-- Index: key_pkey.
select p.job_id::text, 'waits for key ' || p.key
from weirkeeper.parked p
where not exists (select from weirkeeper.key k where k.name = p.key)
limit %(limit)s
