-- Ids of the newest jobs, of one kind or all; of those completed when asked (most are).
-- Indexes: job_pkey backwards, attempt_pkey. Lateral with a limit: as a plain EXISTS the planner
-- may read the whole log of attempts first.
select j.id from weirkeeper.job j
left join lateral (
  select true as done from weirkeeper.attempt a
  where %(completed)s and a.job_id = j.id and a.state = 'completed' limit 1
) log on true
where (%(before)s::bigint is null or j.id < %(before)s::bigint)
  and (%(kind)s::text is null or j.kind = %(kind)s::text)
  and (log.done or not %(completed)s)
order by j.id desc limit %(limit)s
