-- The next events of a running replay, and where they go. Locks: the replay, so that a cancel waits
-- for this batch, and a second run of its job too. Indexes: webhook_replay_pkey, endpoint_pkey.
select r.endpoint_id, r.failed_only, r.after_seq, e.format, e.event_types
from weirkeeper.webhook_replay r
join weirkeeper.endpoint e on e.id = r.endpoint_id
where r.id = %(id)s and r.state = 'running'
for update of r
