-- The last row of a window that inspector/newest looked at; none = it saw everything.
-- Index: job_pkey.
select b.id from weirkeeper.job b where b.id < %(before)s
order by b.id desc offset %(window)s - 1 limit 1
