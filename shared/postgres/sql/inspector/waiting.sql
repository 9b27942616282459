-- Ids of the newest jobs that wait, never tried (pending) or tried before (retryable), within one
-- window: at most %(window)s rows of each place are looked at, below %(before)s. Locks nothing.
-- Indexes, backwards: ready_job_id_key, scheduled_pkey, parked_pkey; job_pkey.
select w.job_id
from (
  select * from (
    (select y.job_id, y.attempt from weirkeeper.ready y
     where y.job_id < %(before)s order by y.job_id desc limit %(window)s)
    union all
    (select s.job_id, s.attempt from weirkeeper.scheduled s
     where s.job_id < %(before)s order by s.job_id desc limit %(window)s)
    union all
    (select p.job_id, p.attempt from weirkeeper.parked p
     where p.job_id < %(before)s order by p.job_id desc limit %(window)s)
  ) every
  order by every.job_id desc limit %(window)s
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
where (w.attempt > 0) = %(tried)s
order by w.job_id desc limit %(limit)s
