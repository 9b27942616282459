-- Has the oldest held delivery of each endpoint sent that was disabled for its failures `gap` seconds ago,
-- and not been probed since. Locks: their rows. Indexes: endpoint_failing, delivery_pending.
with due as (
  select e.id, (select d.id from weirkeeper.delivery d
                where d.endpoint_id = e.id and d.state = 'pending'
                order by d.job_id limit 1) as delivery
  from weirkeeper.endpoint e
  where e.disabled_reason = 'failing'
    and greatest(e.disabled_at, e.probed_at) <= clock_timestamp() - make_interval(secs => %(gap)s)
  order by e.id
  limit %(limit)s
  for update skip locked
), marked as (
  update weirkeeper.endpoint e set probing = due.delivery, probed_at = clock_timestamp()
  from due where e.id = due.id
  returning e.probing, e.owner_id
)
select count(begun.job), count(*) from (
  select case when m.probing is not null then weirkeeper.enqueue(
    'webhook.probe', jsonb_build_object('delivery_id', m.probing::text), owner_id => m.owner_id)
    end as job
  from marked m) begun
