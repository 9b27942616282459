-- The oldest jobs that processes of one host hold, for whoever waits for their end.
-- No locks. Both tables are short (a row a process, a row a child): seq scans.
select r.job_id::text, r.kind
from weirkeeper.running r
join weirkeeper.process p on p.epoch = r.epoch
where p.boot_id = %(boot_id)s and p.pid_namespace = %(pid_namespace)s
  and p.pid = any(%(pids)s::int[])
order by r.job_id limit %(limit)s
