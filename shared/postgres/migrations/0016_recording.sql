-- Recording an event costs its caller less: one statement instead of two, one sequence instead of two,
-- and no executor where an expression will do (PERFORM starts one, an assignment does not).
-- breaking: no

create or replace function weirkeeper.wake(lock_no integer, channel text) returns void
language plpgsql as $$
declare
  unlocked boolean;
begin
  -- Prepared transactions may not hold what a NOTIFY queues; such callers rely on the poll.
  if current_setting('weirkeeper.wake', true) = 'off' then
    return;
  end if;
  if pg_try_advisory_lock_shared(1464160587, lock_no * 2) then
    unlocked := pg_advisory_unlock_shared(1464160587, lock_no * 2);
    if pg_try_advisory_xact_lock_shared(1464160587, lock_no * 2 + 1) then
      return;
    end if;
  end if;
  perform pg_notify(channel, '');
end $$;

-- The one implementation of recording: whoever inserts, and however, comes through here.
create or replace function weirkeeper.event_complete() returns trigger
language plpgsql as $$
declare
  xid xid8;
  woken text;
begin
  if length(new.owner_id) > 200 or length(new.subject) > 2048 or length(new.trace) > 200
     or new.occurred_at <= '0001-01-02 00:00+00'::timestamptz
     or new.occurred_at >= '9999-12-31 00:00+00'::timestamptz then
    raise exception using errcode = '23514', message = format(
      'event of type %s: expected an owner_id and a trace of at most 200 characters, a subject of at '
      'most 2048, a moment in the years 1 to 9999; got %s, %s, %s, %s', new.type,
      length(new.owner_id), length(new.trace), length(new.subject), new.occurred_at);
  end if;
  -- A short object is within all limits: 65 levels take 130 bytes.
  if jsonb_typeof(new.data) is distinct from 'object' or octet_length(new.data::text) > 128 then
    perform weirkeeper.check_object('data of event ' || new.type, new.data);
  end if;
  xid := pg_current_xact_id();  -- rule 1: a transaction id before a sequence number
  insert into weirkeeper.event_pending (seq, event_id)
  select nextval('weirkeeper.event_pending_seq'), new.id
  from weirkeeper.event_type t where t.name = new.type
  returning seq into new.seq;
  if new.seq is null then
    raise exception using errcode = 'WK003', message = format(
      'event type: expected a declared type; got %L; declare it in the application and run weirkeeper migrate',
      new.type);
  end if;
  woken := weirkeeper.wake(0, 'weirkeeper_relay');
  return new;
end $$;

-- Numbers of the log go on above those that were given.
select setval('weirkeeper.event_pending_seq', greatest(p.last_value, e.last_value))
from weirkeeper.event_pending_seq p, weirkeeper.event_seq e;
drop sequence weirkeeper.event_seq;
