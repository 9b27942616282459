-- Keeps the plans of a batch to look-ups, for its transaction alone: a session of a handler has whatever plan
-- the server liked while the tables were empty, which read all of `ready`, merged every key with what is
-- parked, or gathered every delivery that waits to sort them. Locks nothing.
select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true)
