-- Ends a replay between two batches; see the function (0008). Index: replay_pkey.
select weirkeeper.cancel_replay(%(id)s::bigint)
