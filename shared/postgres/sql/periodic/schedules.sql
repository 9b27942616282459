-- Periodic jobs of the kinds that this process knows, with their next ticks and the database's
-- clock, the only one that decides. A small table, read whole. Locks nothing.
select p.name, extract(epoch from p.every)::float8, p.cron, p.timezone, p.missed, p.next_at,
       p.last_started_at is not null, clock_timestamp()
from weirkeeper.periodic p
where p.kind = any (%(kinds)s::text[])
order by p.next_at nulls first
