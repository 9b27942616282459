-- Lets those through who waited behind a migration that did not get its locks. Holds nothing.
select pg_sleep(%(seconds)s::float8)
