-- Ids of the newest jobs that wait: never tried (pending), or tried before (retryable).
-- Reads only what waits: ready, scheduled, parked.
select w.job_id from (
  select job_id, kind, attempt from weirkeeper.ready
  union all select job_id, kind, attempt from weirkeeper.scheduled
  union all select job_id, kind, attempt from weirkeeper.parked
) w
where (w.attempt > 0) = %(tried)s
  and (%(before)s::bigint is null or w.job_id < %(before)s::bigint)
  and (%(kind)s::text is null or w.kind = %(kind)s::text)
order by w.job_id desc limit %(limit)s
