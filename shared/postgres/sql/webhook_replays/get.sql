-- How far a replay has come. Index: webhook_replay_pkey.
select r.id::text, r.endpoint_id::text, r.since, r.until, r.failed_only, r.state, r.total, r.sent,
       r.job_id::text, r.created_at, r.ended_at
from weirkeeper.webhook_replay r
where r.id = %(id)s and r.owner_id = %(owner_id)s
