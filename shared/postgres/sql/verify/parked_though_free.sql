-- Jobs that wait for a concurrency key that has a place for them, the oldest of each key: the sweep,
-- which takes ten seconds, did not see to them. Locks nothing.
-- Indexes: parked_oldest, key_pkey, running_key, ready_key.
select head.job_id::text, 'waits for key ' || k.name || ', which has a place'
from weirkeeper.stuck_keys() s (name)
join weirkeeper.key k on k.name = s.name
cross join lateral (
  select p.job_id, p.parked_at from weirkeeper.parked p
  where p.key = s.name order by p.job_id limit 1
) head
where head.parked_at < clock_timestamp() - interval '1 minute'
  and k.open_at < clock_timestamp() - interval '1 minute'
limit %(limit)s
