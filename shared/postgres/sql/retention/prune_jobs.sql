-- One batch of ended jobs; see the function (0006). Indexes: job_pkey, attempt_pkey, the unique
-- indexes of ready, scheduled, parked and running on job_id, unique_key_job_id_key.
select upto, pruned, more
from weirkeeper.prune_jobs(
  %(after)s, %(size)s,
  clock_timestamp() - make_interval(secs => %(completed)s::float8),
  clock_timestamp() - make_interval(secs => %(ended)s::float8))
