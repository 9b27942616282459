-- The newest life of each slot of each host that beat within a day. A beat older than the lease is lost, whatever
-- the row says. Small table, sequential scan. Locks nothing.
select distinct on (p.role, p.slot, p.host)
       p.role, p.slot,
       case
         when p.phase <> 'stopped' and p.beat_at < clock_timestamp() - interval '15 s' then 'lost'
         else p.phase
       end,
       extract(epoch from clock_timestamp() - p.beat_at)::float8
from weirkeeper.process p
where p.beat_at > clock_timestamp() - interval '1 day'
order by p.role, p.slot, p.host, p.epoch desc
