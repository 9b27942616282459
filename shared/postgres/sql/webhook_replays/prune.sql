-- Removes replays that ended, or were planned and never begun, long ago, with what they list, a batch.
-- Locks: the rows, SKIP LOCKED. Index: webhook_replay_pkey.
with old as materialized (
  select r.id from weirkeeper.webhook_replay r
  where r.state <> 'running'
    and coalesce(r.ended_at, r.created_at) < clock_timestamp() - make_interval(secs => %(age)s)
  order by r.id
  limit %(limit)s
  for update skip locked
), gone as (
  delete from weirkeeper.webhook_replay r where r.id = any (array(select o.id from old o)) returning 1
)
select count(*)::integer from gone
