-- Ids of the newest discarded or cancelled jobs within one window: at most %(window)s rows of the log
-- are looked at, below %(before)s. A retry by hand takes a job out of it. Locks nothing.
-- Indexes: attempt_ended_job backwards, job_pkey.
select w.job_id
from (
  select a.job_id from weirkeeper.attempt a
  where a.state = %(state)s and a.state in ('discarded', 'cancelled') and a.job_id < %(before)s
  order by a.job_id desc limit %(window)s
) w
cross join lateral (
  select b.id from weirkeeper.job b
  where b.id = w.job_id
    and (%(kind)s::text is null or b.kind = %(kind)s::text)
    and (%(queue)s::text is null or b.queue = %(queue)s::text)
    and (%(owner_id)s::text is null or b.owner_id = %(owner_id)s::text)
    and (%(tag)s::text is null or b.tags @> array[%(tag)s::text])
    and (%(after)s::timestamptz is null or b.created_at >= %(after)s::timestamptz)
    and (%(until)s::timestamptz is null or b.created_at < %(until)s::timestamptz)
    and (%(args)s::text is null or b.args @> %(args)s::jsonb)
  limit 1
) j
order by w.job_id desc limit %(limit)s
