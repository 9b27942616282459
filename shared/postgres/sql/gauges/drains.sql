-- The last stop of each slot, with seconds by phase, among the last 200. Locks nothing.
-- Index: drain_pkey.
select distinct on (d.slot) d.slot, extract(epoch from d.finished_at)::float8, d.phases
from (select * from weirkeeper.drain order by epoch desc limit 200) d
order by d.slot, d.epoch desc
