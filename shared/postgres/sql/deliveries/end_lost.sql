-- Ends deliveries whose job ended without them: cancelled or discarded by hand, or gone.
-- Locks: the rows, SKIP LOCKED. Indexes: delivery_pending, job_pkey, attempt_pkey.
with lost as materialized (
  select d.id, coalesce(last.state, 'failed') as state
  from weirkeeper.delivery d
  left join lateral (
    select a.state from weirkeeper.attempt a
    where a.job_id = d.job_id order by a.run desc limit 1) last on true
  where d.state = 'pending'
    and (last.state in ('discarded', 'cancelled')
         or not exists (select from weirkeeper.job j where j.id = d.job_id))
  order by d.id
  limit %(limit)s
  for update of d skip locked
), ended as (
  update weirkeeper.delivery d
  set state = case l.state when 'cancelled' then 'cancelled' else 'failed' end,
      ended_at = clock_timestamp()
  from lost l where d.id = l.id
  returning d.endpoint_id
)
select count(*)::integer, count(weirkeeper.open_endpoint(e.endpoint_id)) from (
  select distinct endpoint_id from ended) e
