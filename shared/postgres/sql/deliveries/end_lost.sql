-- Ends deliveries whose job ended without them: cancelled or discarded by hand, or gone. Looks at the next
-- ones that wait, by endpoint and job; tells how many it looked at, which was the last, how many it ended,
-- how many keys it opened. Each that waits has its job: it gets it in the transaction that makes it.
-- Locks: the rows, SKIP LOCKED. Indexes: delivery_pending, delivery_pkey, job_pkey, attempt_pkey.
with page as materialized (
  select d.id, d.endpoint_id, d.job_id
  from weirkeeper.delivery d
  where d.state = 'pending'
    and (d.endpoint_id, d.job_id) > (%(after_endpoint)s::bigint, %(after_job)s::bigint)
  order by d.endpoint_id, d.job_id
  limit %(limit)s
), judged as materialized (
  select p.id, coalesce(last.state, 'failed') as state
  from page p
  left join lateral (
    select a.state from weirkeeper.attempt a
    where a.job_id = p.job_id order by a.run desc limit 1) last on true
  where last.state in ('discarded', 'cancelled')
     or not exists (select from weirkeeper.job j where j.id = p.job_id offset 0)
), lost as materialized (
  select d.id, d.job_id from weirkeeper.delivery d
  where d.id = any (array(select g.id from judged g)) and d.state = 'pending'
  order by d.id
  for update skip locked
), ended as (
  update weirkeeper.delivery d
  set state = case g.state when 'cancelled' then 'cancelled' else 'failed' end,
      ended_at = clock_timestamp()
  from lost l join judged g on g.id = l.id
  where d.id = l.id
  returning d.endpoint_id
), opened as (
  select count(weirkeeper.open_endpoint(e.endpoint_id)) from (select distinct endpoint_id from ended) e
)
select p.looked, p.endpoints[p.looked], p.jobs[p.looked], (select count(*) from ended)::integer, o.count
from (
  select count(*)::integer as looked, array_agg(p.endpoint_id order by p.endpoint_id, p.job_id) as endpoints,
         array_agg(p.job_id order by p.endpoint_id, p.job_id) as jobs
  from page p
) p cross join opened o
