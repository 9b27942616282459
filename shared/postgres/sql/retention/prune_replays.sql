-- Removes replays that ended long ago, oldest first. Locks: the rows, SKIP LOCKED. Index: replay_pkey.
with old as materialized (
  select r.ctid as row_id from weirkeeper.replay r
  where coalesce(r.finished_at, r.cancelled_at)
      < clock_timestamp() - make_interval(secs => %(age)s::float8)
  order by r.id
  limit %(size)s
  for update skip locked
)
delete from weirkeeper.replay r where r.ctid = any (array(select o.row_id from old o))
