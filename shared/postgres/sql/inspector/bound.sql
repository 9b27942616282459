-- Ends a look that takes too long, for this transaction alone.
select set_config('statement_timeout', '2s', true)
