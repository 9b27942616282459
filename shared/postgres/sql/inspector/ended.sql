-- Ids of the newest discarded or cancelled jobs. Index: attempt_ended.
select a.job_id from weirkeeper.attempt a
join weirkeeper.job j on j.id = a.job_id
where a.state = %(state)s and a.state in ('discarded', 'cancelled')
  and (%(before)s::bigint is null or a.job_id < %(before)s::bigint)
  and (%(kind)s::text is null or j.kind = %(kind)s::text)
order by a.job_id desc limit %(limit)s
