-- Starts a plan. Locks: the row. Index: webhook_replay_pkey.
update weirkeeper.webhook_replay r
set state = 'running',
    job_id = weirkeeper.enqueue(
      'webhook.replay', jsonb_build_object('replay_id', r.id::text), priority => 4,
      owner_id => r.owner_id)
where r.id = %(id)s and r.owner_id = %(owner_id)s and r.state = 'planned'
returning r.id::text
