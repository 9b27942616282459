-- How far events came, by the database's clock: fanned out, in which relay transaction, by which
-- job, finished. Indexes: event_pkey, event_fanout_pkey, attempt_pkey.
select e.id::text, f.xmin::text, f.jobs ->> %(subscription)s,
       extract(epoch from f.fanned_out_at - e.occurred_at)::double precision,
       extract(epoch from done.finished_at - e.occurred_at)::double precision
from weirkeeper.event e
left join weirkeeper.event_fanout f on f.event_id = e.id
left join lateral (
  select a.finished_at from weirkeeper.attempt a
  where a.job_id = (f.jobs ->> %(subscription)s)::bigint and a.state = 'completed'
) done on true
where e.id = any (%(ids)s::uuid[])
