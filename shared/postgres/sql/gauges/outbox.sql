-- Events that wait for the relay (capped), how long the first has waited, and how many it gave up.
-- event_failure holds only events that failed. Locks nothing. Indexes: event_pending_pkey,
-- event_pkey.
select (select count(*) from (
          select from weirkeeper.event_pending p order by p.seq limit %(cap)s) c)::float8,
       (select extract(epoch from clock_timestamp() - e.occurred_at)
        from (select p.event_id from weirkeeper.event_pending p order by p.seq limit 1) first
        cross join lateral (
          select v.occurred_at from weirkeeper.event v where v.id = first.event_id limit 1
        ) e)::float8,
       (select count(*) from (
          select from weirkeeper.event_failure f where f.poisoned_at is not null limit %(cap)s
        ) c)::float8
