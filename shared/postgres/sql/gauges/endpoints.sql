-- Endpoints by how they fare, counted to a cap, and since when the first of those that fail has failed.
-- Locks nothing. Indexes: endpoint_pkey, endpoint_failing_since, endpoint_disabled.
select (select count(*) from (select from weirkeeper.endpoint e order by e.id limit %(cap)s) c)::float8,
       (select count(*) from (
          select from weirkeeper.endpoint e where e.enabled and e.failing_since is not null
          order by e.failing_since limit %(cap)s) c)::float8,
       (select count(*) from (
          select from weirkeeper.endpoint e where not e.enabled order by e.id limit %(cap)s) c)::float8,
       (select extract(epoch from clock_timestamp() - e.failing_since)::float8
        from weirkeeper.endpoint e where e.enabled and e.failing_since is not null
        order by e.failing_since limit 1)
