-- Ids of the newest jobs that a process holds. Index: running_pkey.
select r.job_id from weirkeeper.running r
where (%(before)s::bigint is null or r.job_id < %(before)s::bigint)
  and (%(kind)s::text is null or r.kind = %(kind)s::text)
order by r.job_id desc limit %(limit)s
