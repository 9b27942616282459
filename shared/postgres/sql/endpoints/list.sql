-- Endpoints of an owner, newest first, or one of them; with how many deliveries wait, at most 1,001
-- counted. Indexes: endpoint_owner, delivery_pending.
select e.id::text, e.url, e.description, e.event_types, e.headers, e.contact, e.format, e.signature,
       e.ordering, e.rate, e.schedule, e.enabled, e.disabled_reason, e.disabled_at, e.failing_since, e.failures,
       e.last_success_at, case when e.busy_until > clock_timestamp() then e.busy_until end,
       case when e.not_before > clock_timestamp() then e.not_before end, e.created_at, e.updated_at,
       (select count(*) from (
          select from weirkeeper.delivery d
          where d.endpoint_id = e.id and d.state = 'pending' limit 1001) waiting)::integer
from weirkeeper.endpoint e
where e.owner_id = %(owner_id)s and (%(id)s::bigint is null or e.id = %(id)s)
order by e.id desc
