-- Discarded and cancelled jobs that still hold a uniqueness which they were to give up: another like them
-- would be refused. Reads the holders whole. Locks nothing. Indexes: job_pkey, attempt_pkey.
select u.job_id::text, 'is ' || a.state || ' and keeps others out'
from weirkeeper.unique_key u
join weirkeeper.job j on j.id = u.job_id
cross join lateral (
  select l.state from weirkeeper.attempt l where l.job_id = u.job_id order by l.run desc limit 1
) a
where a.state in ('discarded', 'cancelled') and (a.state = any (j.unique_states)) is not true
limit %(limit)s
