-- Of a periodic whose job was put off, the ticks that follow add no pile.
-- breaking: no

-- As before (0006), but a job that waits for its time (it snoozed, or what it depends on is away) stands for
-- the ticks that follow, as one in line does: otherwise each would add a job that snoozes as well, and all
-- of them run when it is over.
create or replace function weirkeeper.fire_periodic(
  periodic_name text, tick timestamptz, following timestamptz, skip boolean
) returns bigint
language plpgsql as $$
declare
  due weirkeeper.periodic;
  last bigint;
begin
  update weirkeeper.periodic p set next_at = following
  where p.name = periodic_name and p.next_at = tick and tick <= clock_timestamp()
  returning * into due;
  if not found or skip
     or exists (select from weirkeeper.periodic_tick t
                where t.name = periodic_name and t.tick_at = tick) then
    return null;
  end if;
  select t.job_id into last from weirkeeper.periodic_tick t
  where t.name = periodic_name order by t.tick_at desc limit 1;
  if exists (select from weirkeeper.ready r where r.job_id = last)
     or exists (select from weirkeeper.scheduled s where s.job_id = last) then
    return null;
  end if;
  return weirkeeper.start_periodic(due, tick, false);
end $$;
