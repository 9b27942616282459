-- Brings jobs here that wait in the line of another queue though their kind is declared in this one: it was
-- moved while they waited, or they came back to where they ran before. In the order in which they stood, with
-- fresh numbers. An update, so that whoever ends or takes the job meanwhile finds its row, not a gap.
-- First, a kind of ours is declared here again when that was overwritten by a process that is gone: of those
-- that claim, the youngest that knows a kind says where it lies (docs/decisions/0028).
-- Locks: such kinds and the rows, SKIP LOCKED. Indexes: kind_pkey, ready_pkey, ready_job_id_key. `process`
-- and `queue` are small.
with disputed as materialized (
  select k.ctid as row_id
  from weirkeeper.kind k
  where k.name = any (%(kinds)s::text[]) and k.queue <> %(queue)s
    and exists (
      select from weirkeeper.process me
      where me.epoch = %(epoch)s and me.phase in ('starting', 'ready') and me.rest_asked_at is null)
    and not exists (
      select from weirkeeper.process o
      where o.epoch > %(epoch)s and o.role = 'queue' and o.phase in ('starting', 'ready')
        and o.rest_asked_at is null and k.name = any (o.kinds)
        and o.beat_at > clock_timestamp() - make_interval(secs => %(lease)s::float8))
  for update skip locked
), again as (
  update weirkeeper.kind k set queue = %(queue)s, declared_at = now()
  where k.ctid = any (array(select d.row_id from disputed d))
  returning k.name
), ours as materialized (
  select a.name from again a
  union all
  select k.name from weirkeeper.kind k
  where k.name = any (%(kinds)s::text[]) and k.queue = %(queue)s
), astray as materialized (
  select r.*
  from ours o
  cross join weirkeeper.queue q
  cross join lateral (
    select w.job_id, w.kind, w.priority, w.seq
    from weirkeeper.ready w
    where w.queue = q.name and w.kind = o.name
    order by w.priority, w.seq
    limit %(limit)s
    for update skip locked
  ) r
  where q.name <> %(queue)s
  limit %(limit)s
), numbered as materialized (
  select s.job_id, nextval('weirkeeper.ready_seq') as seq
  from (select a.job_id from astray a order by a.kind, a.priority, a.seq) s
), brought as (
  update weirkeeper.ready w
  set queue = %(queue)s, seq = n.seq
  from numbered n
  where w.job_id = n.job_id
  returning w.job_id
)
select (select count(*) from brought)::integer,
       (select array_agg(a.name order by a.name) from again a),
       (select weirkeeper.wake_queue(%(queue)s) from brought b limit 1)
