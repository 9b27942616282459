-- Epochs that hold these jobs and are gone, for the rescue. Indexes: running_pkey, process_pkey.
select distinct r.epoch
from weirkeeper.running r
left join weirkeeper.process p on p.epoch = r.epoch
where r.job_id = any (%(ids)s::text[]::bigint[]) and (p.epoch is null or p.phase = 'stopped')
