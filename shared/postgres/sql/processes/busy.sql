-- How many jobs each of these processes holds. `running` is small (what is in flight): seq scan.
-- Locks nothing.
select r.epoch, count(*)::integer
from weirkeeper.running r
where r.epoch = any(%(epochs)s::bigint[])
group by r.epoch
