-- The server's version as a number, 150004 for 15.4.
select current_setting('server_version_num')::integer
