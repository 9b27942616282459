-- How one stop went: a row that outlives the process. A repeated call changes nothing.
-- Index: drain_pkey.
insert into weirkeeper.drain (epoch, role, slot, queue, started_at, phases, jobs)
select p.epoch, p.role, p.slot, p.queue,
       clock_timestamp() - make_interval(secs => %(seconds)s::double precision),
       %(phases)s::jsonb, %(jobs)s::jsonb
from weirkeeper.process p where p.epoch = %(epoch)s
on conflict (epoch) do nothing
