-- Delivers the next events of a replay, one transaction; how many are left. See the function (migration events).
-- Locks: the replay. Indexes: replay_pkey, replay_event_pkey, event_pkey, event_fanout_pkey.
select weirkeeper.replay_batch(%(id)s::bigint, %(size)s::integer)
