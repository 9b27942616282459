-- Before jobs are pruned: when each periodic job last completed, kept with its schedule. Looks from the
-- newest tick back to the first that completed. Locks: rows of periodic that change, briefly.
-- Indexes: periodic_tick_pkey, attempt_pkey.
update weirkeeper.periodic p
set last_success_at = s.finished_at
from weirkeeper.periodic o
cross join lateral (
  select a.finished_at
  from weirkeeper.periodic_tick t
  cross join lateral (
    select l.state, l.finished_at from weirkeeper.attempt l
    where l.job_id = t.job_id order by l.run desc limit 1
  ) a
  where t.name = o.name and a.state = 'completed'
  order by t.tick_at desc limit 1
) s
where p.name = o.name and s.finished_at > coalesce(p.last_success_at, '-infinity'::timestamptz)
