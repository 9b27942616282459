-- The last replays, or one, and how far they are. Locks nothing. Index: replay_pkey backwards.
select r.id::text, r.subscription, r.types, r.since, r.until, r.events, r.done, r.jobs,
       case when r.cancelled_at is not null then 'cancelled'
            when r.finished_at is not null then 'finished' else 'running' end,
       r.job_id::text, r.created_at
from weirkeeper.replay r
where %(id)s::bigint is null or r.id = %(id)s::bigint
order by r.id desc limit %(limit)s
