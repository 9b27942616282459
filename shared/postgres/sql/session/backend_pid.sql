-- Which server process answers: behind a pooler another one than it was said to be at the connect.
select pg_backend_pid()
