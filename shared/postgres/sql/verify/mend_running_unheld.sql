-- Has such jobs hold the place that they take: they run, so it is only counted. Locks: the rows.
-- Indexes: running_pkey, job_pkey.
update weirkeeper.running r
set key = j.concurrency_key
from weirkeeper.job j
where r.job_id = any (%(ids)s::text[]::bigint[]) and r.key is null and j.id = r.job_id
  and j.concurrency_key is not null
returning r.job_id::text, 'holds its place'
