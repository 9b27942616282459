-- How the last stops went, newest first, each with up to 20 of the jobs that it interrupted (their
-- attempts end within the drain). Locks nothing. Indexes: drain_pkey, process_pkey, attempt_finished,
-- job_pkey.
select d.epoch, d.role, d.slot, d.queue, p.host, d.started_at, d.finished_at,
       extract(epoch from d.finished_at - d.started_at)::float8 as seconds,
       d.phases, d.jobs, coalesce(i.interrupted, '[]'::jsonb) as interrupted
from (
  select * from weirkeeper.drain l
  where %(slot)s::text is null or l.slot = %(slot)s
  order by l.epoch desc limit %(limit)s
) d
left join lateral (select o.host from weirkeeper.process o where o.epoch = d.epoch limit 1) p on true
left join lateral (
  select jsonb_agg(jsonb_build_object('job', c.job_id::text, 'kind', c.kind)) as interrupted
  from (
    select a.job_id, j.kind
    from weirkeeper.attempt a
    cross join lateral (select b.kind from weirkeeper.job b where b.id = a.job_id limit 1) j
    where a.finished_at >= d.started_at and a.finished_at <= d.finished_at
      and a.epoch = d.epoch and a.outcome = 'interrupted'
    order by a.job_id limit 20
  ) c
  where (d.jobs ->> 'interrupted')::integer > 0
) i on true
order by d.finished_at desc, d.epoch desc
