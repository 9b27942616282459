-- A frozen sleeper makes every writer notify: the server ends its session within about 12 s.
-- Without effect on a Unix socket, where no network can be cut.
select set_config('tcp_keepalives_idle', '5', false),
       set_config('tcp_keepalives_interval', '2', false),
       set_config('tcp_keepalives_count', '3', false),
       set_config('tcp_user_timeout', '8000', false)
