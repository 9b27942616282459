-- Ends a replay; what it sent so far goes on. Locks: the row. Index: webhook_replay_pkey.
update weirkeeper.webhook_replay r
set state = 'cancelled', ended_at = clock_timestamp()
where r.id = %(id)s and r.owner_id = %(owner_id)s and r.state in ('planned', 'running')
returning r.id::text
