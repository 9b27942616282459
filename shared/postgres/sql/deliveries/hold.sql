-- Closes the key of an endpoint that is busy, or keeps order, so that nobody asks before it is worth it;
-- true = its deliveries wait under the key, this one too. Locks: the key.
-- Indexes: delivery_pkey, endpoint_pkey, delivery_pending.
select e.ordering = 'strict', weirkeeper.key_open(weirkeeper.endpoint_key(e.id), greatest(
         e.busy_until,
         case when e.ordering = 'strict' then greatest(e.not_before, (
           select o.next_at from weirkeeper.delivery o
           where o.endpoint_id = e.id and o.state = 'pending' order by o.job_id limit 1),
           clock_timestamp() + make_interval(secs => %(least)s)) end))
from weirkeeper.delivery d
join weirkeeper.endpoint e on e.id = d.endpoint_id
where d.id = %(id)s and e.enabled and (e.busy_until > clock_timestamp() or e.ordering = 'strict')
