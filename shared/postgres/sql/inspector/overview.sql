-- How each declared kind stands, or one of them. Counts stop at %(cap)s: of ready jobs by kind, of
-- scheduled ones by kind, of parked ones and of those that ended (newest first, by state) in all. Ready ones
-- are looked for in every queue: they may lie where the kind was declared before.
-- Locks nothing. Indexes: kind_pkey, ready_pkey, scheduled_kind, attempt_ended_job, attempt_pkey,
-- job_pkey, paused_pkey. `running` is small.
with wanted as materialized (
  select k.name, k.queue from weirkeeper.kind k
  where %(kind)s::text is null or k.name = %(kind)s::text
), parked as materialized (
  select c.kind, count(*) filter (where c.attempt = 0) as pending,
         count(*) filter (where c.attempt > 0) as retryable
  from (select p.kind, p.attempt from weirkeeper.parked p limit %(cap)s) c group by c.kind
), running as materialized (
  select r.kind, count(*) as n from weirkeeper.running r group by r.kind
), ended as materialized (
  select j.kind, e.state, count(*) as n
  from (
    (select a.job_id, a.state from weirkeeper.attempt a
     where a.state = 'discarded' and a.state in ('discarded', 'cancelled')
     order by a.job_id desc limit %(cap)s)
    union all
    (select a.job_id, a.state from weirkeeper.attempt a
     where a.state = 'cancelled' and a.state in ('discarded', 'cancelled')
     order by a.job_id desc limit %(cap)s)
    union all
    (select a.job_id, a.state
     from (select l.job_id, l.state from weirkeeper.attempt l
           order by l.job_id desc, l.run desc limit %(cap)s) a
     where a.state = 'completed')
  ) e
  cross join lateral (select b.kind from weirkeeper.job b where b.id = e.job_id limit 1) j
  group by j.kind, e.state
)
select w.name, w.queue,
       y.pending + s.pending + coalesce(p.pending, 0),
       coalesce(r.n, 0),
       y.retryable + s.retryable + coalesce(p.retryable, 0),
       coalesce((select e.n from ended e where e.kind = w.name and e.state = 'completed'), 0),
       coalesce((select e.n from ended e where e.kind = w.name and e.state = 'discarded'), 0),
       coalesce((select e.n from ended e where e.kind = w.name and e.state = 'cancelled'), 0),
       extract(epoch from clock_timestamp() - head.ready_at)::float8,
       exists (select from weirkeeper.paused d
               where d.what = 'kind' and d.name = w.name or d.what = 'queue' and d.name = w.queue)
from wanted w
left join parked p on p.kind = w.name
left join running r on r.kind = w.name
cross join lateral (
  select count(*) filter (where c.attempt = 0) as pending,
         count(*) filter (where c.attempt > 0) as retryable
  from (select b.attempt
        from weirkeeper.queue q
        cross join lateral (select b.attempt from weirkeeper.ready b
                            where b.queue = q.name and b.kind = w.name limit %(cap)s) b
        limit %(cap)s) c
) y
cross join lateral (
  select count(*) filter (where c.attempt = 0) as pending,
         count(*) filter (where c.attempt > 0) as retryable
  from (select b.attempt from weirkeeper.scheduled b where b.kind = w.name limit %(cap)s) c
) s
cross join lateral (
  select min(f.ready_at) as ready_at
  from weirkeeper.queue q
  cross join generate_series(1, 4) as priority (n)
  cross join lateral (
    select b.ready_at from weirkeeper.ready b
    where b.queue = q.name and b.kind = w.name and b.priority = priority.n
    order by b.seq limit 1
  ) f
) head
order by w.name
