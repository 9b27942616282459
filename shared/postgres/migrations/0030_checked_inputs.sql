-- What SQL accepts, every program can read and run; whether a job was tried is said once.
-- breaking: no

-- For claims/discard_expired, promotions/expire, inspector/explain and verify/expiry_lost, which Postgres
-- dissolves it in: an expiry is over once its job was tried, or once somebody has it run by hand.
create function weirkeeper.overrules_expiry(started_at timestamptz, outcome text, evidence jsonb)
returns boolean
language sql immutable parallel safe
return started_at is not null or outcome <> 'rescued' or evidence ? 'retried_by_hand';
comment on function weirkeeper.overrules_expiry is
  'Internal: whether an entry of the log tells of a try, or of a retry by hand; not so, or NULL: of neither.';

-- As before (0002), and no decimal that would be read as another number.
create or replace function weirkeeper.check_object(what text, value jsonb) returns void
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
  -- What has a point, Python reads as a double: not as infinity, not as nothing. Only a long one is neither.
  if size > 308 and exists (
       select from jsonb_path_query(value, 'strict $.** ? (@.type() == "number")
         ? (@ >= 1.797693134862315808e308 || @ <= -1.797693134862315808e308
            || @ != 0 && @ < 4.9e-324 && @ > -4.9e-324)') n (number)
       where n.number::text like '%.%') then
    raise exception using errcode = 'WK002', message = format(
      '%s: expected numbers that a double can hold; got a decimal beyond 1.8e308 or nearer to 0 than 5e-324; pass it as a string',
      what);
  end if;
end $$;

-- As before (0004), and a timeout is at most a day, as everywhere.
create or replace function weirkeeper.check_options(
  priority integer, run_at timestamptz, max_attempts integer, timeout_ms integer, tags text[],
  expires_at timestamptz, concurrency_key text
) returns void
language plpgsql stable as $$
begin
  if not priority between 1 and 4 then
    raise exception using errcode = 'WK004', message = format(
      'priority: expected 1 (first) to 4; got %s; leave it out for 2', priority);
  end if;
  if not weirkeeper.is_moment(run_at) or not weirkeeper.is_moment(expires_at) then
    raise exception using errcode = 'WK004', message = format(
      'run_at and expires_at: expected a moment in the years 1 to 9999; got %s and %s; leave them out for none',
      run_at, expires_at);
  end if;
  if expires_at <= run_at then
    raise exception using errcode = 'WK004', message = format(
      'expires_at: expected a moment after run_at; got %s and %s; such a job never runs',
      expires_at, run_at);
  end if;
  if max_attempts < 1 or not timeout_ms between 1 and 86400000 then
    raise exception using errcode = 'WK004', message = format(
      'max_attempts and timeout_ms: expected 1 or more, and at most a day (86400000); got %s and %s; '
      'leave them out for the kind''s', max_attempts, timeout_ms);
  end if;
  if not weirkeeper.good_tags(tags) then
    raise exception using errcode = 'WK004', message = format(
      'tags: expected at most 16 of 1 to 64 characters; got %s; shorten them',
      left(array_to_string(tags, ', ', 'NULL'), 200));
  end if;
  if length(concurrency_key) not between 1 and 200 then
    raise exception using errcode = 'WK004', message = format(
      'concurrency_key: expected 1 to 200 characters; got %L; leave it out for none',
      left(concurrency_key, 200));
  end if;
end $$;

-- As before (0004), and a timeout is looked at whatever else is given; a list could not read infinity.
create or replace function weirkeeper.job_complete() returns trigger
language plpgsql as $$
declare
  declared weirkeeper.kind;
begin
  select * into declared from weirkeeper.kind k where k.name = new.kind;
  if not found then
    raise exception using errcode = 'WK001', message = format(
      'kind: expected a declared kind; got %L; declare it in the application and run weirkeeper migrate',
      new.kind);
  end if;
  perform weirkeeper.check_object('args of kind ' || new.kind, new.args);
  if not weirkeeper.is_moment(new.created_at) then
    raise exception using errcode = 'WK004', message = format(
      'created_at: expected a moment in the years 1 to 9999; got %s; leave it out for now', new.created_at);
  end if;
  new.queue := declared.queue;
  new.max_attempts := coalesce(new.max_attempts, declared.max_attempts);
  new.timeout_ms := coalesce(new.timeout_ms, declared.timeout_ms);
  new.awaited := coalesce(new.awaited, declared.awaited);
  perform pg_current_xact_id();  -- rule 1: a transaction id before a sequence number
  if num_nonnulls(new.tags, new.expires_at, new.run_at, new.concurrency_key) > 0
     or new.timeout_ms > 86400000 then
    perform weirkeeper.check_options(
      new.priority, new.run_at, new.max_attempts, new.timeout_ms, new.tags, new.expires_at,
      new.concurrency_key);
    insert into weirkeeper.expiry (queue, expires_at, job_id)
    select new.queue, new.expires_at, new.id where new.expires_at is not null;
  end if;
  if new.run_at > clock_timestamp() then
    insert into weirkeeper.scheduled (job_id, run_at, queue, kind, priority, attempt, run, why)
    values (new.id, new.run_at, new.queue, new.kind, new.priority, 0, 0, 'delay');
  else
    insert into weirkeeper.ready (queue, kind, priority, job_id, owner_id)
    values (new.queue, new.kind, new.priority, new.id,
            case when declared.fair then coalesce(new.owner_id, '') end);
    perform weirkeeper.wake_queue(new.queue);
  end if;
  return new;
end $$;
