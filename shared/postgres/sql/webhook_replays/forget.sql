-- A replay that has ended lists nothing any more. Index: webhook_replay_event_pkey.
delete from weirkeeper.webhook_replay_event e
using weirkeeper.webhook_replay r
where r.id = %(id)s and r.state in ('finished', 'cancelled') and e.replay_id = r.id
