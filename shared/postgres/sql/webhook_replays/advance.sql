-- Notes how far a replay has come. Locks: the row. Index: webhook_replay_pkey.
update weirkeeper.webhook_replay r
set after_seq = %(after_seq)s, sent = r.sent + %(sent)s,
    state = case when %(done)s then 'finished' else r.state end,
    ended_at = case when %(done)s then clock_timestamp() end
where r.id = %(id)s and r.state = 'running'
returning r.id::text
