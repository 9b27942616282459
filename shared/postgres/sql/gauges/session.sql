-- Plans of the session for gauges: a count that stops at its cap must not walk a whole table to find
-- that a queue is empty, whatever the statistics say. Small tables have no other way than all of it.
select set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false)
