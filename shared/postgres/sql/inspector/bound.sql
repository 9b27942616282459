-- Ends a look that takes too long, and keeps its plans to look-ups: a count that stops at its cap, or
-- a page, must not walk a whole table to find that nothing fits, whatever the statistics say. For
-- this transaction alone.
select set_config('statement_timeout', '2s', true), set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true)
