-- Ids of the newest jobs, of one kind or all; of those completed when asked (most are).
-- Indexes: job_pkey backwards, attempt_pkey.
select j.id from weirkeeper.job j
where (%(before)s::bigint is null or j.id < %(before)s::bigint)
  and (%(kind)s::text is null or j.kind = %(kind)s::text)
  and (not %(completed)s or exists (
    select from weirkeeper.attempt a where a.job_id = j.id and a.state = 'completed'))
order by j.id desc limit %(limit)s
