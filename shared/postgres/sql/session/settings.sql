-- Settings of every session of ours. Sent as a statement, not as startup parameters, which poolers
-- refuse. jit off: it turned a 0.03 ms statement into 62 ms. Merge and hash joins off: with a
-- generic plan the join from claimed ids to job became a merge join over the whole table. Sequential
-- scans off in the same sessions: their one plan may be made while the tables are empty, and must
-- stay right when 60,000 rows wait (90 ms a claim instead of 2).
select set_config('jit', 'off', false),
       set_config('plan_cache_mode', %(plan_cache_mode)s, false),
       set_config('enable_mergejoin', %(joins)s, false),
       set_config('enable_hashjoin', %(joins)s, false),
       set_config('enable_seqscan', %(joins)s, false),
       set_config('synchronous_commit', %(synchronous_commit)s, false),
       set_config('statement_timeout', %(statement_timeout)s, false),
       set_config('lock_timeout', %(lock_timeout)s, false),
       set_config('idle_in_transaction_session_timeout', '5s', false),
       set_config('client_connection_check_interval', '1s', false),
       set_config('timezone', 'UTC', false)
