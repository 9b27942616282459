-- One pass of the relay, whole, in one statement: so one transaction that no client can leave open.
--
-- Claims pending events in order of seq (rows, not a cursor: a seq is drawn before commit order is
-- known), or one event set aside whose next try is due; matches them with the routes; coalesces;
-- inserts jobs, ready rows and fan-out rows; wakes each queue touched. Nobody else can see a part.
--
-- Locks: the rows claimed, skipping those that another relay holds; the sleep locks of the queues.
-- Indexes: event_pending_pkey (from `after`), event_pkey, route_pkey, endpoint_owner, endpoint_strict, kind_pkey,
-- event_fanout_pkey, event_failure_pkey, event_failure_due.
-- Plan-proof, whatever the statistics were when the session's one plan was made: rows are deleted by
-- their place, and LATERAL with LIMIT or OFFSET keeps each look-up a look-up (as a plain join, a plan
-- made while the outbox was empty walked all of it for each row taken: 40 times slower). No join
-- of one CTE with another, which would be quadratic: job ids are drawn here, not by the insert,
-- because a merged event must name its job.
with turn as materialized (
  -- While an endpoint keeps order, one pass at a time: no fan-out may see this pass without those before.
  -- What another pass took while this one waited is gone, and passed over.
  select 0 * count(pg_advisory_xact_lock(1464160587, -3)) as nothing
  from (select from weirkeeper.endpoint w where w.ordering = 'strict' limit 1) kept
), picked as materialized (
  select p.ctid as place from weirkeeper.event_pending p
  where p.seq > %(after)s::bigint + (select o.nothing from turn o) and p.seq <= %(upto)s::bigint
  order by p.seq
  limit %(size)s::bigint
  for update skip locked
), claimed as (
  delete from weirkeeper.event_pending p
  where p.ctid = any (array(select k.place from picked k))
  returning p.seq, p.event_id
), retried as (
  delete from weirkeeper.event_failure f
  where f.event_id = %(retry)s::uuid and f.poisoned_at is null
    and f.next_try_at <= clock_timestamp()
  returning 0::bigint as seq, f.event_id
), taken as materialized (
  -- A row that was put in line a second time leaves it without doing anything again.
  select c.seq, c.event_id
  from (select seq, event_id from claimed union all select seq, event_id from retried) c
  left join lateral (
    select true as already from weirkeeper.event_fanout f where f.event_id = c.event_id limit 1
  ) f on true
  where f.already is null
), matched as (
  -- Who has no endpoint gets no job to find that out: nearly all types may leave, and each event
  -- would cost a second job. Left joins: an event without a subscriber stays, and gets an empty fan-out. Two owners may use
  -- the same subject, and neither's event may vanish behind the other's.
  select t.seq, t.event_id, e.seq as event_seq, e.subject, e.owner_id, e.trace, e.occurred_at, r.subscription, r.endpoints,
         k.queue, k.max_attempts, k.timeout_ms, k.awaited,
         case when not r.coalesce then t.event_id end as apart,
         row_number() over same as nth
  from taken t
  left join lateral (select * from weirkeeper.event e where e.id = t.event_id limit 1) e on true
  left join lateral (
    select * from weirkeeper.route r
    where r.type = e.type
      and (not r.endpoints
           or exists (select from weirkeeper.endpoint w where w.owner_id = e.owner_id))
    offset 0) r on true
  left join lateral (
    select * from weirkeeper.kind k where k.name = r.subscription limit 1) k on true
  window same as (
    partition by r.subscription, e.owner_id, e.subject, case when not r.coalesce then t.event_id end
    order by t.seq desc)
), drawn as materialized (
  select m.*, case when m.nth = 1 and m.subscription is not null
                   then nextval('weirkeeper.job_id_seq') end as own_job_id
  from matched m
), numbered as materialized (
  select d.*, max(d.own_job_id) over (
    partition by d.subscription, d.owner_id, d.subject, d.apart) as job_id
  from drawn d
), jobs as (
  insert into weirkeeper.job
    (id, kind, queue, args, max_attempts, timeout_ms, awaited, owner_id, event_id, trace)
  overriding system value
  select n.own_job_id, n.subscription, n.queue,
         jsonb_build_object('event_id', n.event_id, 'subject', n.subject),
         n.max_attempts, n.timeout_ms, n.awaited, n.owner_id, n.event_id, n.trace
  from numbered n where n.own_job_id is not null
), placed as (
  -- The claim above has written, so this transaction has an id before it draws a seq (the floor
  -- of the queues rests on it). In order of events, so that queues start with the oldest.
  insert into weirkeeper.ready (queue, kind, priority, job_id)
  select n.queue, n.subscription, 2, n.own_job_id
  from numbered n where n.own_job_id is not null
  order by n.seq, n.subscription
  returning queue
), fanned as (
  -- In order of events, each a microsecond behind the one before at the least: lists say "newest first" by it.
  insert into weirkeeper.event_fanout (event_id, jobs, fanned_out_at)
  select n.event_id,
         coalesce(jsonb_object_agg(n.subscription, n.job_id)
                    filter (where n.subscription is not null), '{}'),
         clock_timestamp() + row_number() over (order by min(n.seq)) * interval '1 microsecond'
  from numbered n group by n.event_id order by min(n.seq)
), lined as (
  insert into weirkeeper.endpoint_line (endpoint_id, event_seq, event_id)
  select w.id, n.event_seq, n.event_id
  from numbered n
  cross join lateral (
    select w.id from weirkeeper.endpoint w
    where w.owner_id = n.owner_id and w.ordering = 'strict' offset 0) w
  where n.endpoints
  on conflict do nothing
), woken as (
  select count(*) as queues
  from (select distinct p.queue from placed p) touched
  cross join lateral weirkeeper.wake_queue(touched.queue) wake
), announced as (
  select string_agg(c.event_id::text, ',') as ids
  from (select t.event_id, (row_number() over (order by t.seq) - 1) / 100 as chunk from taken t) c
  group by c.chunk
)
select
  (select count(*) from taken) as rows,
  (select count(n.own_job_id) from numbered n) as jobs,
  (select count(*) from claimed) as claimed,
  (select max(c.seq) from claimed c) as last_claimed,
  (select greatest(0, extract(epoch from clock_timestamp() - min(n.occurred_at)))
     from numbered n)::double precision as oldest_age,
  array(select a.ids from announced a) as announcements,
  exists (select from weirkeeper.event_failure f
          where f.poisoned_at is null and f.next_try_at <= clock_timestamp()) as retries_due,
  (select case when s.is_called then s.last_value else 0 end
     from weirkeeper.event_pending_seq s) as last_drawn,
  case when %(look)s::boolean then
    (select p.seq from weirkeeper.event_pending p
     where p.seq > %(after)s::bigint order by p.seq limit 1) end as lowest,
  pg_snapshot_xmin(pg_current_snapshot())::text::bigint as xmin,
  -- The next id to be given out (see claims/claim).
  pg_snapshot_xmax(pg_current_snapshot())::text::bigint
    + age(pg_snapshot_xmax(pg_current_snapshot())::xid) as next_xid,
  (select w.queues from woken w) as queues_woken
