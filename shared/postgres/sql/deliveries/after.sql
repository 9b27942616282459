-- Events of an endpoint after a number, oldest first: what a receiver may have missed.
-- Index: delivery_page.
select d.event_seq::text, d.event_id::text, d.event_type, d.state, convert_from(d.body, 'UTF8')
from weirkeeper.delivery d
where d.endpoint_id = %(id)s and d.owner_id = %(owner_id)s and d.event_seq > %(after)s
order by d.event_seq
limit %(limit)s
