-- How many connections ordinary sessions may open at all: the budget is half of it.
select current_setting('max_connections')::integer
     - current_setting('superuser_reserved_connections')::integer
     - coalesce(nullif(current_setting('reserved_connections', true), ''), '0')::integer
