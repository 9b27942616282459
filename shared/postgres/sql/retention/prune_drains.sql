-- Removes rows of stops long ago, oldest first. Locks: the rows, SKIP LOCKED. Index: drain_pkey.
with old as materialized (
  select d.ctid as row_id from weirkeeper.drain d
  where d.finished_at < clock_timestamp() - make_interval(secs => %(age)s::float8)
  order by d.epoch
  limit %(size)s
  for update skip locked
)
delete from weirkeeper.drain d where d.ctid = any (array(select o.row_id from old o))
