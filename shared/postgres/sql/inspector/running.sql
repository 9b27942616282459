-- Ids of the newest jobs that a process holds: never more than there are children and claims ahead
-- of them. Locks nothing. Indexes: running_pkey, job_pkey.
select r.job_id
from weirkeeper.running r
cross join lateral (
  select b.id from weirkeeper.job b
  where b.id = r.job_id
    and (%(kind)s::text is null or b.kind = %(kind)s::text)
    and (%(queue)s::text is null or b.queue = %(queue)s::text)
    and (%(owner_id)s::text is null or b.owner_id = %(owner_id)s::text)
    and (%(tag)s::text is null or b.tags @> array[%(tag)s::text])
    and (%(after)s::timestamptz is null or b.created_at >= %(after)s::timestamptz)
    and (%(until)s::timestamptz is null or b.created_at < %(until)s::timestamptz)
    and (%(args)s::text is null or b.args @> %(args)s::jsonb)
  limit 1
) j
where r.job_id < %(before)s
order by r.job_id desc limit %(limit)s
