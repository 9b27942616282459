-- Many jobs of one kind in one call, all or none.
-- breaking: no

-- Rows come by COPY, n times faster than as an array, into a table of the session: no trace in the
-- log of writes, no neighbour's rows to step over, gone with the transaction.
create function weirkeeper.open_staging() returns void
language plpgsql as $$
begin
  if to_regclass('pg_temp.weirkeeper_staging') is null then
    create temporary table weirkeeper_staging (n integer not null, args jsonb, hash bytea)
      on commit delete rows;
  else
    truncate pg_temp.weirkeeper_staging;
  end if;
end $$;
comment on function weirkeeper.open_staging is
  'Makes pg_temp.weirkeeper_staging (n from 1, args) for COPY, or empties it.';

-- Refuses the first bad row before anything is written; draws the jobs' ids, in order of n.
create function weirkeeper.number_staged(kind text) returns bigint[]
language plpgsql as $$
declare
  total integer;
  low integer;
  high integer;
begin
  select count(*), min(s.n), max(s.n) into total, low, high from pg_temp.weirkeeper_staging s;
  if total > 0 and (low <> 1 or high <> total) then
    raise exception using errcode = 'WK002', message = format(
      'n of staged rows: expected 1 to %s; got %s to %s; number them from 1', total, low, high);
  end if;
  -- Small objects, nearly all of them, are right as they are (see check_object).
  perform weirkeeper.check_object(format('args[%s] of kind %s', s.n, kind), s.args)
  from pg_temp.weirkeeper_staging s
  where jsonb_typeof(s.args) is distinct from 'object' or octet_length(s.args::text) > 128;
  return array(select nextval('weirkeeper.job_id_seq') from generate_series(1, total));
end $$;
comment on function weirkeeper.number_staged is 'Checks staged rows; returns an id for each. WK002.';

-- Rows of `job` are there already: rule 1 holds.
create function weirkeeper.place_jobs(
  ids bigint[], declared weirkeeper.kind, priority integer, run_at timestamptz,
  expires_at timestamptz, owner_id text
) returns void
language plpgsql as $$
begin
  if expires_at is not null then
    insert into weirkeeper.expiry (queue, expires_at, job_id)
    select declared.queue, place_jobs.expires_at, t.id from unnest(ids) t (id);
  end if;
  if run_at > clock_timestamp() then
    insert into weirkeeper.scheduled (job_id, run_at, queue, kind, priority, attempt, run, why)
    select t.id, place_jobs.run_at, declared.queue, declared.name, place_jobs.priority, 0, 0, 'delay'
    from unnest(ids) t (id);
  else
    insert into weirkeeper.ready (queue, kind, priority, job_id, owner_id)
    select declared.queue, declared.name, place_jobs.priority, t.id,
           case when declared.fair then coalesce(place_jobs.owner_id, '') end
    from unnest(ids) with ordinality t (id, n) order by t.n;
    perform weirkeeper.wake_queue(declared.queue);
  end if;
end $$;
comment on function weirkeeper.place_jobs is 'Puts new jobs of one kind where they wait, in order.';

create function weirkeeper.enqueue_staged(
  kind text,
  run_at timestamptz default null,
  priority integer default null,
  owner_id text default null,
  awaited boolean default null,
  max_attempts integer default null,
  timeout_ms integer default null,
  trace text default null,
  tags text[] default null,
  expires_at timestamptz default null,
  unique_by_args boolean default false,
  unique_by text[] default null,
  unique_period interval default null,
  unique_states text[] default null,
  unique_wait boolean default true,
  concurrency_key text default null
) returns bigint[]
language plpgsql as $$
#variable_conflict use_variable
declare
  declared weirkeeper.kind;
  kept_in text[] := weirkeeper.check_unique(unique_by_args, unique_by, unique_period, unique_states);
  ids bigint[];
  hashes bytea[];
  holders bigint[];
  fresh bigint[];
begin
  select * into declared from weirkeeper.kind k where k.name = enqueue_staged.kind;
  if not found then
    raise exception using errcode = 'WK001', message = format(
      'kind: expected a declared kind; got %L; declare it in the application and run weirkeeper migrate',
      kind);
  end if;
  perform weirkeeper.check_options(
    priority, run_at, max_attempts, timeout_ms, tags, expires_at, concurrency_key);
  ids := weirkeeper.number_staged(kind);
  holders := ids;
  fresh := ids;
  if unique_by_args then
    update pg_temp.weirkeeper_staging s
    set hash = weirkeeper.unique_hash(enqueue_staged.kind, s.args, unique_by, unique_period);
    hashes := array(select s.hash from pg_temp.weirkeeper_staging s order by s.n);
    holders := case when unique_wait then weirkeeper.take_unique(hashes, ids)
               else weirkeeper.take_unique_at_once(hashes, ids) end;
    fresh := array(select t.id from unnest(ids, holders) with ordinality t (id, holder, n)
                   where t.id = t.holder order by t.n);
  end if;
  insert into weirkeeper.job
    (id, kind, queue, args, priority, max_attempts, timeout_ms, awaited, owner_id, run_at, trace,
     tags, expires_at, unique_key, unique_states, concurrency_key)
  overriding system value
  select ids[s.n], declared.name, declared.queue, s.args, coalesce(priority, 2),
         coalesce(max_attempts, declared.max_attempts), coalesce(timeout_ms, declared.timeout_ms),
         coalesce(awaited, declared.awaited), owner_id, run_at, trace, tags, expires_at,
         s.hash, kept_in, concurrency_key
  from pg_temp.weirkeeper_staging s
  where ids[s.n] = holders[s.n];
  perform weirkeeper.place_jobs(fresh, declared, coalesce(priority, 2), run_at, expires_at, owner_id);
  truncate pg_temp.weirkeeper_staging;
  return holders;
end $$;
comment on function weirkeeper.enqueue_staged is
  'Adds a job for each staged row, in order of n; returns their ids. WK001, WK002, WK004, WK005.';

create function weirkeeper.enqueue_many(
  kind text,
  args jsonb[],
  run_at timestamptz default null,
  priority integer default null,
  owner_id text default null,
  awaited boolean default null,
  max_attempts integer default null,
  timeout_ms integer default null,
  trace text default null,
  tags text[] default null,
  expires_at timestamptz default null,
  unique_by_args boolean default false,
  unique_by text[] default null,
  unique_period interval default null,
  unique_states text[] default null,
  unique_wait boolean default true,
  concurrency_key text default null
) returns bigint[]
language plpgsql as $$
begin
  perform weirkeeper.open_staging();
  insert into pg_temp.weirkeeper_staging (n, args)
  select t.n, t.value from unnest(enqueue_many.args) with ordinality t (value, n);
  return weirkeeper.enqueue_staged(
    kind, run_at, priority, owner_id, awaited, max_attempts, timeout_ms, trace, tags, expires_at,
    unique_by_args, unique_by, unique_period, unique_states, unique_wait, concurrency_key);
end $$;
comment on function weirkeeper.enqueue_many is
  'Adds many jobs with the same options, all or none; returns their ids, in order. WK001, WK002, WK004, WK005.';
