-- How much waits and runs in each queue, and for how long. Every count stops at its cap, and the
-- oldest row is the first of its lane, so a long queue costs no more than a capped one. parked and
-- running are small (keys in use, children). Locks nothing.
-- Indexes: queue_pkey, kind_pkey, ready_pkey, scheduled_due.
select q.name,
       w.pending::float8, w.retryable::float8, s.pending::float8, s.retryable::float8,
       p.pending::float8, p.retryable::float8, r.running::float8,
       extract(epoch from clock_timestamp() - o.ready_at)::float8,
       extract(epoch from clock_timestamp() - r.since)::float8
from weirkeeper.queue q
cross join lateral (
  select count(*) filter (where c.attempt = 0) as pending,
         count(*) filter (where c.attempt > 0) as retryable
  from (select y.attempt from weirkeeper.ready y where y.queue = q.name limit %(cap)s) c
) w
cross join lateral (
  select count(*) filter (where c.attempt = 0) as pending,
         count(*) filter (where c.attempt > 0) as retryable
  from (select d.attempt from weirkeeper.scheduled d where d.queue = q.name limit %(cap)s) c
) s
cross join lateral (
  select count(*) filter (where c.attempt = 0) as pending,
         count(*) filter (where c.attempt > 0) as retryable
  from (select k.attempt from weirkeeper.parked k where k.queue = q.name limit %(cap)s) c
) p
cross join lateral (
  select count(*) as running, min(coalesce(n.started_at, n.claimed_at)) as since
  from weirkeeper.running n where n.queue = q.name
) r
cross join lateral (
  select min(f.ready_at) as ready_at
  from weirkeeper.kind k
  cross join generate_series(1, 4) as priority (n)
  cross join lateral (
    select y.ready_at from weirkeeper.ready y
    where y.queue = q.name and y.kind = k.name and y.priority = priority.n
    order by y.seq limit 1
  ) f
  where k.queue = q.name
) o
