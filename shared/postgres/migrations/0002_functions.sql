-- The SQL surface: what an application in any language calls inside its own transaction.
-- breaking: no
--
-- Errors carry SQLSTATEs of their own: WK001 unknown kind, WK002 args or data that cannot be
-- stored, WK003 unknown event type, WK004 a bad option.
--
-- The functions run with the caller's rights and name everything in full, so they pin no
-- search_path: the pin costs each call as much as a small insert.

-- The sleep lock (docs/decisions/0001-sleep-lock.md). A sleeping consumer holds A and S exclusively;
-- a writer that gets S shared, before the consumer could take it, may stay silent: the consumer cannot fall asleep
-- until this transaction has ended, and then looks. NOTIFY in every writing transaction would
-- serialise all commits on one cluster-wide lock.
create function weirkeeper.wake(lock_no integer, channel text) returns void
language plpgsql as $$
begin
  -- Prepared transactions may not hold what a NOTIFY queues; such callers rely on the poll.
  if current_setting('weirkeeper.wake', true) = 'off' then
    return;
  end if;
  if pg_try_advisory_lock_shared(1464160587, lock_no * 2) then
    perform pg_advisory_unlock_shared(1464160587, lock_no * 2);
    if pg_try_advisory_xact_lock_shared(1464160587, lock_no * 2 + 1) then
      return;
    end if;
  end if;
  perform pg_notify(channel, '');
end $$;
comment on function weirkeeper.wake is
  'Wakes a consumer if it sleeps, silently binds it to look if it does not.';

create function weirkeeper.wake_queue(queue_name text) returns void
language sql as $$
  select weirkeeper.wake(q.no, 'weirkeeper_queue_' || q.no)
  from weirkeeper.queue q where q.name = queue_name
$$;
comment on function weirkeeper.wake_queue is 'Wakes the processes of one queue.';

-- Refuses what Python refuses (shared/jsonvalue.py), as far as jsonb can still hold it.
create function weirkeeper.check_object(what text, value jsonb) returns void
language plpgsql immutable as $$
declare
  size integer := octet_length(value::text);
begin
  if jsonb_typeof(value) is distinct from 'object' then
    raise exception using errcode = 'WK002', message = format(
      '%s: expected a JSON object; got %s; wrap the value in an object',
      what, coalesce(jsonb_typeof(value), 'NULL'));
  end if;
  if size > 262144 then
    raise exception using errcode = 'WK002', message = format(
      '%s: expected at most 262144 bytes of JSON; got %s; store the content elsewhere and pass its id',
      what, size);
  end if;
  -- 65 levels take 130 bytes: small values, nearly all of them, skip the walk.
  if size > 128 and jsonb_path_exists(value,
       'strict $.**{64} ? (@.type() == "object" || @.type() == "array")') then
    raise exception using errcode = 'WK002', message = format(
      '%s: expected at most 64 levels of nesting; got more; flatten the value', what);
  end if;
  -- Python reads back no longer ones.
  if size > 4000 and jsonb_path_exists(value,
       'strict $.** ? (@.type() == "number") ? (@ >= 1e4000 || @ <= -1e4000)') then
    raise exception using errcode = 'WK002', message = format(
      '%s: expected numbers of at most 4000 digits; got a longer one; pass it as a string', what);
  end if;
end $$;
comment on function weirkeeper.check_object is
  'Raises WK002 unless the value is a JSON object within the limits of size and depth.';

-- The one implementation of recording: whoever inserts, and however, comes through here.
create function weirkeeper.event_complete() returns trigger
language plpgsql as $$
begin
  if not exists (select from weirkeeper.event_type t where t.name = new.type) then
    raise exception using errcode = 'WK003', message = format(
      'event type: expected a declared type; got %L; declare it in the application and run weirkeeper migrate',
      new.type);
  end if;
  if length(new.owner_id) > 200 or length(new.subject) > 2048 or length(new.trace) > 200
     or new.occurred_at <= '0001-01-02 00:00+00'::timestamptz
     or new.occurred_at >= '9999-12-31 00:00+00'::timestamptz then
    raise exception using errcode = '23514', message = format(
      'event of type %s: expected an owner_id and a trace of at most 200 characters, a subject of at '
      'most 2048, a moment in the years 1 to 9999; got %s, %s, %s, %s', new.type,
      length(new.owner_id), length(new.trace), length(new.subject), new.occurred_at);
  end if;
  perform weirkeeper.check_object('data of event ' || new.type, new.data);
  perform pg_current_xact_id();  -- rule 1: a transaction id before a sequence number
  new.seq := nextval('weirkeeper.event_seq');
  insert into weirkeeper.event_pending (event_id) values (new.id);
  perform weirkeeper.wake(0, 'weirkeeper_relay');
  return new;
end $$;
comment on function weirkeeper.event_complete is
  'Trigger: checks an event that is recorded and makes it pending. WK002, WK003, 23514.';

create function weirkeeper.record_event(
  type text,
  owner_id text default null,
  subject text default '',
  data jsonb default '{}',
  trace text default null
) returns uuid
language plpgsql as $$
declare
  new_id uuid;
begin
  insert into weirkeeper.event (type, owner_id, subject, data, trace)
  values (record_event.type, record_event.owner_id, record_event.subject, record_event.data,
          record_event.trace)
  returning id into new_id;
  return new_id;
end $$;
comment on function weirkeeper.record_event is
  'Records an event in the caller''s transaction; returns its id. WK002, WK003.';

create trigger event_complete before insert on weirkeeper.event
  for each row when (new.seq is null) execute function weirkeeper.event_complete();

-- A final state and its notice are one transaction, whatever path finalises. NOTIFY takes at most
-- 8,000 bytes and must never abort the transaction: at most 100 ids (2,000 bytes) a notice.
create function weirkeeper.tell_final(ids bigint[]) returns integer
language plpgsql as $$
declare
  total integer := coalesce(cardinality(ids), 0);
begin
  for low in 1 .. total by 100 loop
    perform pg_notify('weirkeeper_final', array_to_string(ids[low : low + 99], ','));
  end loop;
  return total;
end $$;
comment on function weirkeeper.tell_final is 'Tells waiters that these jobs are final.';

-- Of a job that goes back in line. Two look-ups for jobs of fair kinds, one for all others.
create function weirkeeper.fair_owner(kind text, job_id bigint) returns text
language plpgsql stable as $$
begin
  if exists (select from weirkeeper.kind k where k.name = fair_owner.kind and k.fair) then
    return coalesce(
      (select j.owner_id from weirkeeper.job j where j.id = fair_owner.job_id), '');
  end if;
  return null;
end $$;
comment on function weirkeeper.fair_owner is
  'Internal: owner by whom a job takes turns; NULL = its kind takes none.';
