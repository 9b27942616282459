-- Says something on the channel of a probe, in another session.
select pg_notify(%(channel)s, '')
