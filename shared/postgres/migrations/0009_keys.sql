-- Concurrency keys: how many jobs of one name run at once, in which order, and when it opens.
-- breaking: no
--
-- Jobs that hold a place of a key are the rows of `running` and `ready` that name it. A place is taken
-- under the lock on the key's row alone; it may be given up without it, and goes along when a job
-- moves between the two tables. Whoever gives one up locks the key afterwards and lets the next one
-- go on: so either sees what the other did. Key rows are locked once in a transaction, in order of
-- their names, after all others, and never for long: no function that an application calls in a
-- transaction of its own locks them, but for key_open.

-- The oldest parked jobs go to the end of their lanes, as many as have a place, with the place. The
-- caller holds the keys, or (at_most) hands over so many places that it holds itself.
create function weirkeeper.call_parked(names text[], at_most integer[] default null)
returns integer
language plpgsql set enable_seqscan = off as $$
declare
  called integer;
  queues text[];
begin
  with open as materialized (
    select k.name, w.at_most,
           (select count(*) from weirkeeper.running r where r.key = k.name)
           + (select count(*) from weirkeeper.ready y where y.key = k.name) as taken
    from unnest(names, at_most) w (name, at_most)
    join weirkeeper.key k on k.name = w.name
    where k.open_at <= clock_timestamp()
  ), most as materialized (
    select max(k.max_per_key) as n from weirkeeper.kind k
  ), next as materialized (
    select f.row_id
    from open o
    cross join lateral (
      select c.row_id, c.kind, row_number() over (order by c.job_id) as place
      from (
        select p.ctid as row_id, p.kind, p.job_id from weirkeeper.parked p
        where p.key = o.name
        order by p.job_id
        limit greatest(0, least(o.at_most, (select m.n from most m) - o.taken))
        for update skip locked
      ) c
    ) f
    left join weirkeeper.kind k on k.name = f.kind
    where o.taken + f.place <= coalesce(k.max_per_key, 1)
  ), gone as (
    delete from weirkeeper.parked p
    where p.ctid = any (array(select n.row_id from next n))
    returning p.*
  ), placed as (
    insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run, key, owner_id)
    select g.queue, g.kind, g.priority, g.job_id, g.attempt, g.run, g.key,
           weirkeeper.fair_owner(g.kind, g.job_id)
    from gone g order by g.job_id
    returning queue
  )
  select count(*), array_agg(distinct p.queue) into called, queues from placed p;
  perform weirkeeper.wake_queue(q.name) from unnest(queues) q (name);
  return called;
end $$;
comment on function weirkeeper.call_parked is
  'Internal: puts the oldest parked jobs of keys in line while there are places; how many.';

create function weirkeeper.unpark(names text[]) returns integer
language plpgsql set enable_seqscan = off as $$
begin
  if names is null then
    return 0;
  end if;
  perform from weirkeeper.key k where k.name = any (names) order by k.name for update;
  return weirkeeper.call_parked(array(select k.name from weirkeeper.key k where k.name = any (names)));
end $$;
comment on function weirkeeper.unpark is
  'Lets the next jobs of these keys go on, after places were given up; how many. NULL for none.';

-- Before a claim's jobs with a key are run: those that have no place, or whose key is closed, are
-- parked. A job is let through in order of the claim, and never past one that is parked already.
create function weirkeeper.admit(ids bigint[], of_epoch bigint, of_token bigint) returns bigint[]
language plpgsql set enable_seqscan = off as $$
declare
  names text[];
  hit bigint[];
  late text[];
begin
  select array_agg(distinct j.concurrency_key) into names
  from (
    select r.job_id from weirkeeper.running r
    where r.job_id = any (ids) and r.epoch = of_epoch and r.token = of_token
    order by r.job_id for update
  ) mine
  join weirkeeper.job j on j.id = mine.job_id;
  if names is null then
    return '{}';
  end if;
  loop  -- retention removes keys that nobody uses
    insert into weirkeeper.key (name)
    select n.name from unnest(names) n (name)
    where not exists (select from weirkeeper.key k where k.name = n.name)
    order by n.name
    on conflict do nothing;
    perform from weirkeeper.key k where k.name = any (names) order by k.name for update;
    exit when (select count(*) from weirkeeper.key k where k.name = any (names))
              = cardinality(names);
  end loop;
  with door as materialized (
    select k.name, k.open_at <= clock_timestamp() as open,
           exists (select from weirkeeper.parked p where p.key = k.name) as waits,
           (select count(*) from weirkeeper.running r where r.key = k.name)
           + (select count(*) from weirkeeper.ready y where y.key = k.name) as taken
    from weirkeeper.key k where k.name = any (names)
  ), judged as materialized (
    select m.job_id, m.held, d.name, d.open and d.waits as late,
           d.open and (m.held or not d.waits and d.taken + m.place <= coalesce(k.max_per_key, 1))
             as goes
    from (
      select r.job_id, r.kind, j.concurrency_key as name, r.key is not null as held,
             row_number() over (partition by j.concurrency_key, r.key is null
                                order by array_position(ids, r.job_id)) as place
      from weirkeeper.running r
      join weirkeeper.job j on j.id = r.job_id
      where r.job_id = any (ids) and r.epoch = of_epoch and r.token = of_token
    ) m
    join door d on d.name = m.name
    left join weirkeeper.kind k on k.name = m.kind
  ), through as (
    update weirkeeper.running r set key = v.name
    from judged v where r.job_id = v.job_id and v.goes and not v.held
  ), gone as (
    delete from weirkeeper.running r
    using judged v where r.job_id = v.job_id and not v.goes
    returning r.job_id, v.name, v.late, r.queue, r.kind, r.priority, r.attempt, r.run
  ), parked as (
    insert into weirkeeper.parked (job_id, key, queue, kind, priority, attempt, run)
    select g.job_id, g.name, g.queue, g.kind, g.priority, g.attempt, g.run - 1  -- it was no run
    from gone g order by g.job_id
    returning job_id, key
  )
  select coalesce(array_agg(p.job_id), '{}'), array_agg(p.key) filter (where g.late)
  into hit, late
  from parked p join gone g using (job_id);
  if late is not null then
    perform weirkeeper.call_parked(array(select distinct unnest(late)));
  end if;
  return hit;
end $$;
comment on function weirkeeper.admit is
  'Internal: parks those of a claim''s jobs whose concurrency key has no place for them; their ids.';

create function weirkeeper.key_open(name text, open_at timestamptz default null) returns integer
language plpgsql as $$
begin
  if name is null or length(name) not between 1 and 200 then
    raise exception using errcode = 'WK004', message = format(
      'concurrency_key: expected 1 to 200 characters; got %L; name it', left(name, 200));
  end if;
  insert into weirkeeper.key as k (name, open_at)
  values (key_open.name, coalesce(key_open.open_at, '-infinity'))
  on conflict on constraint key_pkey do update set open_at = excluded.open_at;
  return weirkeeper.unpark(array[name]);
end $$;
comment on function weirkeeper.key_open is
  'Starts no job of a key before a moment (infinity: until called again; null: opens it). Commit soon. WK004.';

-- A timer calls it: keys whose moment has come.
create function weirkeeper.open_keys() returns integer
language plpgsql set enable_seqscan = off as $$
declare
  names text[];
begin
  names := array(
    select k.name from weirkeeper.key k
    where k.open_at > '-infinity' and k.open_at <= now()
    order by k.name limit 1000 for update skip locked);
  update weirkeeper.key k set open_at = '-infinity' where k.name = any (names);
  return weirkeeper.call_parked(names);
end $$;
comment on function weirkeeper.open_keys is
  'Internal: lets jobs of keys go on whose moment has come; how many.';

-- Keys whose parked jobs might go on: none, unless something went wrong. Keys are found by leaping
-- from one to the next in the index.
create function weirkeeper.stuck_keys() returns setof text
language sql stable set enable_seqscan = off as $$
  with recursive used as (
    (select p.key from weirkeeper.parked p order by p.key limit 1)
    union all
    select n.key
    from used u
    cross join lateral (
      select p.key from weirkeeper.parked p where p.key > u.key order by p.key limit 1
    ) n
  )
  select u.key
  from used u
  join weirkeeper.key k on k.name = u.key
  cross join lateral (
    select p.kind from weirkeeper.parked p where p.key = u.key order by p.job_id limit 1
  ) head
  left join weirkeeper.kind d on d.name = head.kind
  where k.open_at <= clock_timestamp()
    and (select count(*) from weirkeeper.running r where r.key = u.key)
        + (select count(*) from weirkeeper.ready y where y.key = u.key) < coalesce(d.max_per_key, 1)
$$;
comment on function weirkeeper.stuck_keys is
  'Internal: keys that are open and have a place and a parked job.';

-- One batch of concurrency keys that are open, and that no job waits for or holds a place of. Looked
-- at again under the lock. A claim that wants one at this moment makes it anew.
create function weirkeeper.prune_keys(size integer) returns integer
language plpgsql
set enable_seqscan = off as $$
declare
  idle text[];
  pruned integer;
begin
  idle := array(
    select k.name from weirkeeper.key k
    where k.open_at <= now()
      and not exists (select from weirkeeper.parked p where p.key = k.name)
      and not exists (select from weirkeeper.running r where r.key = k.name)
      and not exists (select from weirkeeper.ready y where y.key = k.name)
    order by k.name limit size for update skip locked);
  delete from weirkeeper.key k
  where k.name = any (idle)
    and not exists (select from weirkeeper.parked p where p.key = k.name)
    and not exists (select from weirkeeper.running r where r.key = k.name)
    and not exists (select from weirkeeper.ready y where y.key = k.name);
  get diagnostics pruned = row_count;
  return pruned;
end $$;
comment on function weirkeeper.prune_keys is 'Removes concurrency keys that nobody uses; how many.';
