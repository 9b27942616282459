-- Releases both locks: from now on writers stay silent.
select pg_advisory_unlock_all()
