-- Every periodic job with the jobs of its last five starts, newest first, and the end of the newest
-- job that has ended. Small tables. Indexes: periodic_tick_pkey, attempt_pkey.
select p.name, p.kind, extract(epoch from p.every)::float8, p.cron, p.timezone, p.next_at,
       p.last_started_at, s.job_ids, e.state, e.error
from weirkeeper.periodic p
cross join lateral (
  select array_agg(t.job_id order by t.job_id desc) as job_ids
  from (select t.job_id from weirkeeper.periodic_tick t
        where t.name = p.name order by t.tick_at desc limit 5) t
) s
left join lateral (
  select a.state, a.error
  from unnest(s.job_ids) as j (id)
  cross join lateral (
    select l.state, l.error from weirkeeper.attempt l
    where l.job_id = j.id order by l.run desc limit 1
  ) a
  where a.state in ('completed', 'discarded', 'cancelled')
  order by j.id desc limit 1
) e on true
order by p.name
