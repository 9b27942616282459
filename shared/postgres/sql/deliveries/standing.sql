-- When a delivery that could not begin may be tried again: seconds from now, null when nobody knows.
-- Indexes: delivery_pkey, endpoint_pkey, delivery_pending.
select extract(epoch from greatest(
         case when e.busy_until > clock_timestamp() then e.busy_until end,
         case when e.not_before > clock_timestamp() then e.not_before end,
         d.next_at,
         case when e.ordering = 'strict' then (
           select o.next_at from weirkeeper.delivery o
           where o.endpoint_id = e.id and o.state = 'pending' order by o.job_id limit 1) end
       ) - clock_timestamp())::double precision
from weirkeeper.delivery d
join weirkeeper.endpoint e on e.id = d.endpoint_id
where d.id = %(id)s
