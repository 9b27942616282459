-- Ids of the newest jobs of every state, or (completed) of those that are done, within one window:
-- at most %(window)s rows are looked at, below %(before)s. Args are read last, and only of rows that
-- fit otherwise. Locks nothing. Indexes: job_pkey backwards, attempt_pkey.
select j.id
from (
  select b.id, b.kind, b.queue, b.owner_id, b.tags, b.created_at
  from weirkeeper.job b where b.id < %(before)s order by b.id desc limit %(window)s
) j
left join lateral (
  select true as done from weirkeeper.attempt a
  where %(completed)s and a.job_id = j.id and a.state = 'completed' limit 1
) log on true
where (log.done or not %(completed)s)
  and (%(kind)s::text is null or j.kind = %(kind)s::text)
  and (%(queue)s::text is null or j.queue = %(queue)s::text)
  and (%(owner_id)s::text is null or j.owner_id = %(owner_id)s::text)
  and (%(tag)s::text is null or j.tags @> array[%(tag)s::text])
  and (%(after)s::timestamptz is null or j.created_at >= %(after)s::timestamptz)
  and (%(until)s::timestamptz is null or j.created_at < %(until)s::timestamptz)
  and case when %(args)s::text is null then true else (
    select c.args @> %(args)s::jsonb from weirkeeper.job c where c.id = j.id) end
order by j.id desc limit %(limit)s
