-- Counts a failed try, once, however many relays saw it fail (`failures` is the count that this one
-- saw before its try). The fifth poisons: kept, shown, alerted, requeued by hand.
-- Index: event_failure_pkey.
update weirkeeper.event_failure f
set failures = f.failures + 1,
    last_error = left(%(error)s, 2000),
    next_try_at = clock_timestamp() + make_interval(secs => %(delay)s::double precision),
    poisoned_at = case when f.failures + 1 >= %(limit)s::integer then clock_timestamp() end
where f.event_id = %(event_id)s::uuid and f.failures = %(failures)s::integer
  and f.poisoned_at is null
returning f.poisoned_at is not null
