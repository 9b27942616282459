-- Limits that change while jobs run and wait hold from the next start on.
-- breaking: no

-- Before a claim's jobs with a key are run: those that have no place, or whose key is closed, are
-- parked. A job is let through in order of the claim, and never past one that is parked already. Whoever
-- cancelled one meanwhile was told that its end was asked for, so it must not wait again.
create or replace function weirkeeper.admit(ids bigint[], of_epoch bigint, of_token bigint)
returns bigint[]
language plpgsql set enable_seqscan = off as $$
declare
  names text[];
  hit bigint[];
  late text[];
  unwanted bigint[];
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
           (select count(*) from weirkeeper.running r where r.key = k.name) as running,
           (select count(*) from weirkeeper.ready y where y.key = k.name) as called
    from weirkeeper.key k where k.name = any (names)
  ), judged as materialized (
    select m.job_id, m.held, d.name, d.open and d.waits as late,
           d.open and (m.held or not d.waits)
             and m.place + d.running + case when m.held then -m.holding else d.called end
                 <= coalesce(k.max_per_key, 1) as goes
    from (
      select r.job_id, r.kind, j.concurrency_key as name, r.key is not null as held,
             count(r.key) over (partition by j.concurrency_key) as holding,
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
    returning r.job_id, v.name, v.late, r.queue, r.kind, r.priority, r.attempt, r.run,
              r.cancel_requested_at is not null as unwanted
  ), parked as (
    insert into weirkeeper.parked (job_id, key, queue, kind, priority, attempt, run)
    select g.job_id, g.name, g.queue, g.kind, g.priority, g.attempt, g.run - 1  -- it was no run
    from gone g order by g.job_id
    returning job_id, key
  )
  select coalesce(array_agg(p.job_id), '{}'), array_agg(p.key) filter (where g.late),
         array_agg(p.job_id) filter (where g.unwanted)
  into hit, late, unwanted
  from parked p join gone g using (job_id);
  if unwanted is not null then
    perform weirkeeper.cancel_waiting(unwanted);
  end if;
  if late is not null then
    perform weirkeeper.call_parked(array(select distinct unnest(late)));
  end if;
  return hit;
end $$;

-- greatest() would pass over the null of a queue that has no cap any more.
create or replace function weirkeeper.cap_room(queue_name text) returns integer
language plpgsql as $$
declare
  most integer;
begin
  select q.cap into most from weirkeeper.queue q where q.name = queue_name for no key update;
  if most is null then
    return null;
  end if;
  return greatest(0, most - (select count(*) from weirkeeper.running r where r.queue = queue_name));
end $$;
