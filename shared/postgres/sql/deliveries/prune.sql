-- Removes deliveries that ended long ago, a batch. Locks: the rows, SKIP LOCKED. Index: delivery_ended.
with old as materialized (
  select d.id from weirkeeper.delivery d
  where d.ended_at < clock_timestamp() - make_interval(secs => %(age)s)
  order by d.ended_at
  limit %(limit)s
  for update skip locked
), gone as (
  delete from weirkeeper.delivery d where d.id = any (array(select o.id from old o)) returning 1
)
select count(*)::integer from gone
