-- How long this session waits for a lock: long for its turn as the migrator, short inside migrations.
select set_config('lock_timeout', %(lock_timeout)s, false)
