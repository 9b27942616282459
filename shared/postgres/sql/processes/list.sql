-- Every process that lives or lived lately, newest life of a slot first. Small table, seq scan.
select epoch, role, slot, queue, queues, host, boot_id, pid_namespace, pid, pid_started, version, phase,
       address, connections, children, started_at, generation, rest_asked_at is not null as resting,
       extract(epoch from clock_timestamp() - beat_at)::double precision as beat_age
from weirkeeper.process
order by role, slot, epoch desc
