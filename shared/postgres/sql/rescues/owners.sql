-- Who holds running jobs, and what is known of them. A row without a process counts as dead.
-- `running` is small (what is in flight). Index: process_pkey.
select r.epoch, p.host, p.boot_id, p.pid_namespace, p.pid, p.pid_started, p.phase,
       extract(epoch from clock_timestamp() - p.beat_at)::double precision,
       extract(epoch from p.beat_at)::double precision
from (select distinct epoch from weirkeeper.running) r
left join weirkeeper.process p on p.epoch = r.epoch
