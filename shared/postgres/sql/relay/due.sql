-- Events set aside whose next try has come, the longest waiting first. Index: event_failure_due.
select f.event_id, f.failures from weirkeeper.event_failure f
where f.poisoned_at is null and f.next_try_at <= clock_timestamp()
order by f.next_try_at
limit %(size)s::bigint
