-- One event with everything that is known of it. Locks nothing.
-- Indexes: event_pkey, event_failure_pkey, event_fanout_pkey.
select e.id::text, e.type, e.owner_id, e.subject, e.occurred_at,
       case when x.poisoned_at is not null then 'poisoned'
            when x.event_id is not null then 'failing'
            when f.event_id is not null then 'fanned_out'
            else 'pending' end,
       coalesce(x.failures, 0), e.data, e.trace, nullif(x.last_error, ''),
       case when x.poisoned_at is null then x.next_try_at end, f.fanned_out_at
from weirkeeper.event e
left join weirkeeper.event_failure x on x.event_id = e.id
left join weirkeeper.event_fanout f on f.event_id = e.id
where e.id = %(id)s::uuid
