-- Queues in which something waits whose time has come and that no living process serves: what is declared
-- there no more, or has no process now. Locks nothing. Indexes: scheduled_due, expiry_pkey. `queue` and
-- `process` are small.
select q.name
from weirkeeper.queue q
where not exists (
    select from weirkeeper.process o
    where o.role = 'queue' and o.phase <> 'stopped' and (o.queue = q.name or o.queues ? q.name)
      and o.beat_at > clock_timestamp() - make_interval(secs => %(lease)s::float8))
  and coalesce(
    (select true from weirkeeper.scheduled s
     where s.queue = q.name and s.run_at <= now() order by s.run_at limit 1),
    (select true from weirkeeper.expiry e
     where e.queue = q.name and e.expires_at <= now() order by e.expires_at limit 1))
order by q.name
