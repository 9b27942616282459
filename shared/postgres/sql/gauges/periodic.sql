-- When each periodic job last completed, by the jobs of its last 50 ticks or, where those are pruned, by
-- its own row. Small tables. Locks nothing. Indexes: periodic_tick_pkey, attempt_pkey.
select p.name, extract(epoch from greatest(p.last_success_at, s.finished_at))::float8
from weirkeeper.periodic p
left join lateral (
  select max(a.finished_at) as finished_at
  from (select t.job_id from weirkeeper.periodic_tick t
        where t.name = p.name order by t.tick_at desc limit 50) j
  cross join lateral (
    select l.state, l.finished_at from weirkeeper.attempt l
    where l.job_id = j.job_id order by l.run desc limit 1
  ) a
  where a.state = 'completed'
) s on true
where coalesce(p.last_success_at, s.finished_at) is not null
