-- Plans of the relay's session. One generic plan, made perhaps while the outbox is empty, must stay
-- right when 100,000 rows wait: so no sequential scan and no sort of a whole table, whatever the
-- statistics said then. Bounds: a pass must end within a stop's 10 s. Commits are synchronous,
-- because job ids are announced.
select set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('enable_seqscan', 'off', false),
       set_config('enable_bitmapscan', 'off', false),
       set_config('enable_hashjoin', 'off', false),
       set_config('enable_mergejoin', 'off', false),
       set_config('statement_timeout', '8s', false),
       set_config('lock_timeout', '5s', false)
