-- Jobs with a concurrency key that have run for a minute without holding a place of it: more jobs of the key
-- would run at once than may. A claim is let through within moments. `running` is small. Locks nothing.
-- Index: job_pkey.
select r.job_id::text, 'runs without a place of key ' || j.concurrency_key
from weirkeeper.running r
join weirkeeper.job j on j.id = r.job_id
where r.key is null and j.concurrency_key is not null
  and r.claimed_at < clock_timestamp() - interval '1 minute'
limit %(limit)s
