-- Everything that explains where one job is, in one look; its queue is the one where it runs, or where its
-- kind lies. Locks nothing. What is counted stops at
-- %(many)s; jobs ahead are those of lanes with a smaller priority that are not paused, and those before
-- it in its own; of a kind whose owners take turns, those of its owner.
-- Indexes: job_pkey, running_pkey, ready_job_id_key, ready_pkey, scheduled_pkey, parked_pkey,
-- attempt_pkey, key_pkey, kind_pkey, queue_pkey, rate_start_at, running_key, ready_key, ready_owner, paused_pkey, process_pkey. `running` and `process` are small.
select j.kind, q.name as queue, case when y.queue <> q.name then y.queue end as lies_in, j.max_attempts, j.expires_at,
       case when tries.tried is null then j.expires_at <= clock_timestamp() end as expired, nullif(d.command, '{}') as command,
       case when r.job_id is not null then 'running'
            when y.job_id is not null then 'ready'
            when s.job_id is not null then 'scheduled'
            when p.job_id is not null then 'parked'
            else 'ended' end as "where",
       coalesce(r.attempt, y.attempt, s.attempt, p.attempt, a.attempt, 0) as attempt,
       a.state as last_state,
       qp.paused_at as queue_paused_at, kp.paused_at as kind_paused_at,
       kp.quarantine,
       live.processes, live.children, busy.n as busy,
       cap.cap, d.rate_n, (d.rate_ms / 1000.0)::float8 as rate_seconds, rate.opens_at as rate_opens_at,
       y.ready_at, ahead.n as ahead, case when y.owner_id is not null then true end as fair,
       s.run_at, s.why, s.run_at <= clock_timestamp() as due,
       p.key, case when p.job_id is not null then coalesce(d.max_per_key, 1) end as max_n,
       held.n as holders, held.holder,
       case when k.open_at > clock_timestamp() and isfinite(k.open_at) then k.open_at end as open_at,
       case when k.open_at = 'infinity' then true end as closed,
       o.slot, o.host, o.pid,
       case when r.job_id is null then null
            when o.epoch is null or o.phase = 'stopped'
              or o.beat_at < clock_timestamp() - interval '15 s' then 'lost'
            when o.phase = 'draining' then 'draining' else 'alive' end as owner,
       r.claimed_at, case when r.job_id is null then a.started_at else r.started_at end as started_at,
       r.cancel_requested_at, r.progress,
       r.started_at + make_interval(secs => j.timeout_ms / 1000.0) as deadline,
       a.outcome, a.cause, a.error, a.evidence - 'stack' - 'stacks' as evidence,
       a.finished_at as ended_at
from weirkeeper.job j
left join weirkeeper.running r on r.job_id = j.id
left join weirkeeper.ready y on y.job_id = j.id
left join weirkeeper.scheduled s on s.job_id = j.id
left join weirkeeper.parked p on p.job_id = j.id
left join weirkeeper.key k on k.name = p.key
left join weirkeeper.kind d on d.name = j.kind
cross join lateral (select coalesce(r.queue, d.queue, j.queue) as name) q
left join weirkeeper.queue cap on cap.name = q.name
left join weirkeeper.process o on o.epoch = r.epoch
left join weirkeeper.paused qp on qp.what = 'queue' and qp.name = q.name
left join weirkeeper.paused kp on kp.what = 'kind' and kp.name = j.kind
left join lateral (
  select l.outcome, l.state, l.attempt, l.cause, l.error, l.evidence, l.started_at, l.finished_at
  from weirkeeper.attempt l where l.job_id = j.id order by l.run desc limit 1
) a on true
left join lateral (
  select true as tried from weirkeeper.attempt l
  where l.job_id = j.id and weirkeeper.overrules_expiry(l.started_at, l.outcome, l.evidence) limit 1
) tries on j.expires_at is not null
left join lateral (
  select f.at + make_interval(secs => d.rate_ms / 1000.0) as opens_at
  from (
    select t.at, t.total - t.n as before from weirkeeper.rate_start t
    where t.kind = j.kind and t.at > clock_timestamp() - make_interval(secs => d.rate_ms / 1000.0)
    order by t.at, t.total limit 1
  ) f
  cross join (
    select t.total from weirkeeper.rate_start t
    where t.kind = j.kind order by t.at desc, t.total desc limit 1
  ) l
  where l.total - f.before >= d.rate_n
) rate on d.rate_n is not null
cross join lateral (
  select count(*)::integer as processes, 
         coalesce(sum(coalesce((l.queues ->> q.name)::integer, l.children)), 0)::integer as children
  from weirkeeper.process l
  where l.role = 'queue' and (l.queue = q.name or l.queues ? q.name) and l.phase = 'ready' and j.kind = any (l.kinds)
    and l.beat_at >= clock_timestamp() - interval '15 s'
) live
cross join lateral (
  select count(*)::integer as n from weirkeeper.running b where b.queue = q.name
) busy
left join lateral (
  select least(sum(lane.n), %(many)s)::integer as n
  from weirkeeper.kind other
  cross join generate_series(1, y.priority) as priority (n)
  cross join lateral (
    select count(*) as n from (
      (select from weirkeeper.ready b
       where b.queue = y.queue and b.kind = other.name and b.priority = priority.n
         and b.seq < case when priority.n = y.priority then y.seq else 9223372036854775807 end
         and (priority.n < y.priority or y.owner_id is null)
       limit %(many)s)
      union all
      (select from weirkeeper.ready b
       where b.queue = y.queue and b.kind = other.name and b.priority = priority.n
         and b.owner_id = y.owner_id and b.seq < y.seq and priority.n = y.priority
       limit %(many)s)) c
  ) lane
  where other.queue = y.queue and (priority.n < y.priority or other.name = y.kind)
    and not exists (select from weirkeeper.paused z where z.what = 'kind' and z.name = other.name)
) ahead on y.job_id is not null
left join lateral (
  select count(*)::integer as n, min(b.job_id)::text as holder
  from (select r.job_id from weirkeeper.running r where r.key = p.key
        union all select y.job_id from weirkeeper.ready y where y.key = p.key) b
) held on p.job_id is not null
where j.id = %(id)s
