-- What all living processes of all hosts and generations may open together. Small table, sequential
-- scan. Locks nothing.
select coalesce(sum(p.connections), 0)::integer
from weirkeeper.process p
where p.phase <> 'stopped' and p.beat_at > clock_timestamp() - interval '15 s'
