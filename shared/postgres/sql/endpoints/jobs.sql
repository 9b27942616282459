-- Jobs of an endpoint's deliveries that are on their way. Index: delivery_pending.
select array_agg(d.job_id) from weirkeeper.delivery d
where d.endpoint_id = %(id)s and d.state = 'pending' and d.job_id is not null
