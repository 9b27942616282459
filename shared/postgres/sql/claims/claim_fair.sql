-- As claims/claim, of fair kinds alone: within a lane the owners take turns, beginning behind the one that
-- was served last, each with an equal share of what is asked for. What somebody else takes at the same
-- moment is missing from the answer; claims/claim then finds the rest. Locks: the rows taken, FOR
-- UPDATE SKIP LOCKED. Indexes: ready_owner, leaping from one owner to the next; job_pkey.
with recursive lane as materialized (
  select l.kind, l.priority, l.after, l.n,
         not coalesce((select bool_or(s.what = 'queue' and s.name = %(queue)s)
                       from weirkeeper.paused s), false)
         and l.kind <> all (array(select s.name from weirkeeper.paused s where s.what = 'kind'))
           as open
  from unnest(%(kinds)s::text[], %(priorities)s::smallint[], %(after)s::text[])
       with ordinality as l (kind, priority, after, n)
), behind as (
  select l.n, 1 as step, f.owner_id
  from lane l
  cross join lateral (
    select w.owner_id from weirkeeper.ready w
    where w.queue = %(queue)s and w.kind = l.kind and w.priority = l.priority
      and w.owner_id > l.after and l.open
    order by w.owner_id limit 1
  ) f
  union all
  select o.n, o.step + 1, f.owner_id
  from behind o
  join lane l on l.n = o.n
  cross join lateral (
    select w.owner_id from weirkeeper.ready w
    where w.queue = %(queue)s and w.kind = l.kind and w.priority = l.priority
      and w.owner_id > o.owner_id
    order by w.owner_id limit 1
  ) f
  where o.step < %(limit)s
), before as (
  select l.n, 1 as step, f.owner_id
  from lane l
  cross join lateral (
    select w.owner_id from weirkeeper.ready w
    where w.queue = %(queue)s and w.kind = l.kind and w.priority = l.priority
      and w.owner_id >= '' and w.owner_id <= l.after and l.open
    order by w.owner_id limit 1
  ) f
  union all
  select o.n, o.step + 1, f.owner_id
  from before o
  join lane l on l.n = o.n
  cross join lateral (
    select w.owner_id from weirkeeper.ready w
    where w.queue = %(queue)s and w.kind = l.kind and w.priority = l.priority
      and w.owner_id > o.owner_id and w.owner_id <= l.after
    order by w.owner_id limit 1
  ) f
  where o.step < %(limit)s
), owner as materialized (
  select t.n, t.owner_id, row_number() over (partition by t.n order by t.late, t.step) as turn,
         ceil(%(limit)s / count(*) over (partition by t.n)::float8)::integer as share
  from (select b.n, b.step, b.owner_id, false as late from behind b
        union all select b.n, b.step, b.owner_id, true from before b) t
), chosen as materialized (
  select o.n, o.owner_id, o.turn, c.row_id, c.place
  from owner o
  join lane l on l.n = o.n
  cross join lateral (
    select s.row_id, row_number() over (order by s.seq) as place
    from (
      select w.ctid as row_id, w.seq from weirkeeper.ready w
      where w.queue = %(queue)s and w.kind = l.kind and w.priority = l.priority
        and w.owner_id = o.owner_id
      order by w.seq limit o.share
    ) s
  ) c
  order by o.n, c.place, o.turn
  limit %(limit)s
), picked as materialized (
  select w.ctid as row_id from weirkeeper.ready w
  where w.ctid = any (array(select c.row_id from chosen c))
  for update skip locked
), taken as (
  delete from weirkeeper.ready w
  where w.ctid = any (array(select p.row_id from picked p))
  returning w.job_id, w.kind, w.priority, w.seq, w.attempt, w.run + 1 as run, w.ready_at,
            w.key, w.ctid as row_id
), held as (
  insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token, key)
  select t.job_id, t.run, t.attempt, %(queue)s, t.kind, t.priority, %(epoch)s, %(token)s, t.key
  from taken t
), loaded as (
  select t.*, c.n, c.place, c.turn, j.max_attempts, j.timeout_ms, j.awaited,
         j.expires_at <= now() as expired,
         j.concurrency_key is not null as keyed,
         '{"id":"' || t.job_id || '","run":' || t.run || ',"attempt":' || t.attempt
         || ',"max_attempts":' || j.max_attempts || ',"kind":"' || t.kind
         || '","timeout_ms":' || j.timeout_ms
         || ',"event_id":' || coalesce('"' || j.event_id || '"', 'null')
         || ',"owner_id":' || coalesce(to_json(j.owner_id)::text, 'null')
         || ',"trace":' || coalesce(to_json(j.trace)::text, 'null')
         || ',"args":' || j.args::text || '}' as line
  from taken t
  join chosen c on c.row_id = t.row_id
  -- The limit keeps this a look-up: without it a plan made while `job` was empty read all of it.
  cross join lateral (select * from weirkeeper.job where id = t.job_id limit 1) j
  order by c.n, c.place, c.turn
)
select array_agg(l.job_id), array_agg(l.kind), array_agg(l.priority), array_agg(l.seq),
       array_agg(l.run), array_agg(l.attempt), array_agg(l.max_attempts),
       array_agg(l.timeout_ms / 1000.0::double precision), array_agg(l.awaited),
       array_agg(extract(epoch from clock_timestamp() - l.ready_at)::double precision),
       convert_to(string_agg(l.line, E'\n'), 'UTF8'),
       array_agg(l.job_id) filter (where l.expired),
       array_agg(l.job_id) filter (where l.keyed),
       (select array_agg(last.owner_id order by n.n)
        from lane n
        left join lateral (
          select c.owner_id from chosen c
          where c.n = n.n order by c.place desc, c.turn desc limit 1
        ) last on true)
from loaded l
