-- What is held now: jobs by processes, those of them whose owner is not heard of any more, and endpoints
-- by deliveries that run. `running` is small (what is in flight). Locks nothing.
-- Indexes: running_pkey, process_pkey, job_pkey, delivery_pkey, endpoint_pkey.
select count(*)::float8,
       count(*) filter (where p.epoch is null or p.phase = 'stopped'
         or p.beat_at < clock_timestamp() - make_interval(secs => %(lease)s))::float8,
       count(distinct e.id)::float8
from weirkeeper.running r
left join weirkeeper.process p on p.epoch = r.epoch
left join lateral (
  select j.args ->> 'delivery_id' as delivery from weirkeeper.job j
  where r.kind = 'webhook.deliver' and j.id = r.job_id limit 1
) j on true
left join lateral (
  select d.endpoint_id from weirkeeper.delivery d
  where d.id = case when j.delivery ~ '^[0-9]{1,18}$' then j.delivery::bigint end limit 1
) d on true
left join lateral (
  select o.id from weirkeeper.endpoint o
  where o.id = d.endpoint_id and o.busy_until > clock_timestamp() limit 1
) e on true
