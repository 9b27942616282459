-- Writes kinds that are new or changed. Index: kind_pkey.
insert into weirkeeper.kind as k (name, queue, max_attempts, timeout_ms, awaited, searchable,
                                max_per_key, fair, rate_n, rate_ms, command)
select d.*
from (
  select g.name, g.queue, g.max_attempts, g.timeout_ms, g.awaited,
         array(select jsonb_array_elements_text(g.searchable)) as searchable, g.max_per_key,
         g.fair, g.rate_n, g.rate_ms,
         array(select jsonb_array_elements_text(g.command)) as command
  from unnest(%(names)s::text[], %(queues)s::text[], %(max_attempts)s::integer[],
              %(timeouts_ms)s::integer[], %(awaited)s::boolean[], %(searchable)s::jsonb[],
              %(max_per_key)s::integer[], %(fair)s::boolean[], %(rate_n)s::integer[],
              %(rate_ms)s::integer[], %(commands)s::jsonb[])
       as g (name, queue, max_attempts, timeout_ms, awaited, searchable, max_per_key, fair,
             rate_n, rate_ms, command)
) d
where not exists (
  select from weirkeeper.kind h
  where (h.name, h.queue, h.max_attempts, h.timeout_ms, h.awaited, h.searchable, h.max_per_key,
         h.fair, h.rate_n, h.rate_ms, h.command)
      is not distinct from
        (d.name, d.queue, d.max_attempts, d.timeout_ms, d.awaited, d.searchable, d.max_per_key,
         d.fair, d.rate_n, d.rate_ms, d.command))
on conflict (name) do update
set queue = excluded.queue, max_attempts = excluded.max_attempts,
    timeout_ms = excluded.timeout_ms, awaited = excluded.awaited,
    searchable = excluded.searchable, max_per_key = excluded.max_per_key, fair = excluded.fair,
    rate_n = excluded.rate_n, rate_ms = excluded.rate_ms,
    command = excluded.command, declared_at = now()
