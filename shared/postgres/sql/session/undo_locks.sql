-- Advisory locks of the session: an idle child would hold them for ever.
select pg_advisory_unlock_all()
