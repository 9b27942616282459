-- Recording an event costs its caller less again: place, transaction id and wake are one statement.
-- Each expression of PL/pgSQL is made ready anew in each transaction, which for a caller that
-- commits every event was a fifth of the whole; a function in plain SQL is dissolved into the statement.
-- breaking: no

-- The writer's side of the sleep lock (docs/decisions/0001-sleep-lock.md), as one expression.
create function weirkeeper.notified(lock_no integer, channel text) returns boolean
language sql as $$
  select case
    -- Prepared transactions may not hold what a NOTIFY queues; such callers rely on the poll.
    when current_setting('weirkeeper.wake', true) = 'off' then false
    when pg_try_advisory_lock_shared(1464160587, lock_no * 2)
      and pg_advisory_unlock_shared(1464160587, lock_no * 2)
      and pg_try_advisory_xact_lock_shared(1464160587, lock_no * 2 + 1) then false
    else pg_notify(channel, '') is not null
  end
$$;
comment on function weirkeeper.notified is
  'Internal: wakes who sleeps behind a lock, once the caller commits; whether a notice was needed.';

create or replace function weirkeeper.wake(lock_no integer, channel text) returns void
language plpgsql as $$
declare
  woken boolean;
begin
  woken := weirkeeper.notified(lock_no, channel);
end $$;

-- The one implementation of recording: whoever inserts, and however, comes through here. Each expression
-- of PL/pgSQL is made ready anew in each transaction: so one look tells whether there is anything to look at.
create or replace function weirkeeper.event_complete() returns trigger
language plpgsql as $$
begin
  -- A short object is within all limits of JSON: 65 levels take 130 bytes.
  if length(new.owner_id) > 200 or length(new.subject) > 2048 or length(new.trace) > 200
     or new.occurred_at <= '0001-01-02 00:00+00'::timestamptz
     or new.occurred_at >= '9999-12-31 00:00+00'::timestamptz
     or jsonb_typeof(new.data) is distinct from 'object' or octet_length(new.data::text) > 128 then
    if length(new.owner_id) > 200 or length(new.subject) > 2048 or length(new.trace) > 200
       or new.occurred_at <= '0001-01-02 00:00+00'::timestamptz
       or new.occurred_at >= '9999-12-31 00:00+00'::timestamptz then
      raise exception using errcode = '23514', message = format(
        'event of type %s: expected an owner_id and a trace of at most 200 characters, a subject of at '
        'most 2048, a moment in the years 1 to 9999; got %s, %s, %s, %s', new.type,
        length(new.owner_id), length(new.trace), length(new.subject), new.occurred_at);
    end if;
    perform weirkeeper.check_object('data of event ' || new.type, new.data);
  end if;
  -- Conditions come before what is selected: so a transaction id before a sequence number (rule 1).
  insert into weirkeeper.event_pending (seq, event_id)
  select nextval('weirkeeper.event_pending_seq'), new.id
  from weirkeeper.event_type t
  where t.name = new.type and pg_current_xact_id() is not null
    and weirkeeper.notified(0, 'weirkeeper_relay') is not null
  returning seq into new.seq;
  if new.seq is null then
    raise exception using errcode = 'WK003', message = format(
      'event type: expected a declared type; got %L; declare it in the application and run weirkeeper migrate',
      new.type);
  end if;
  return new;
end $$;
