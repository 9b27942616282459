-- Every finished attempt of one job, oldest first. Index: attempt_pkey.
select run, attempt, outcome, state, error, cause, coalesce(evidence, '{}'), claimed_at,
       started_at, finished_at, result
from weirkeeper.attempt where job_id = %(id)s order by run
