-- Events that are named are looked up when they are requeued, however many failed.
-- breaking: no

-- One condition for both ways had one plan for both: all that failed was read for one event.
create or replace function weirkeeper.requeue_events(ids uuid[] default null) returns setof uuid
language plpgsql set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  if ids is null then
    return query
      update weirkeeper.event_failure f
      set failures = 0, poisoned_at = null, next_try_at = clock_timestamp()
      where f.poisoned_at is not null
      returning f.event_id;
  else
    return query
      update weirkeeper.event_failure f
      set failures = 0, poisoned_at = null, next_try_at = clock_timestamp()
      where f.event_id = any (ids)
      returning f.event_id;
  end if;
  perform weirkeeper.wake(0, 'weirkeeper_relay');
end $$;
