-- The last row of a window that inspector/ended looked at; none = it saw everything.
-- Index: attempt_ended_job backwards.
select a.job_id from weirkeeper.attempt a
where a.state = %(state)s and a.state in ('discarded', 'cancelled') and a.job_id < %(before)s
order by a.job_id desc offset %(window)s - 1 limit 1
