-- Ends a replay between two batches; see the function (migration events). Index: replay_pkey.
select weirkeeper.cancel_replay(%(id)s::bigint)
