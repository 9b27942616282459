-- The rows of a batch that failed, to be tried one by one. Locks nothing. Index: event_pending_pkey.
select p.seq from weirkeeper.event_pending p
where p.seq > %(after)s::bigint
order by p.seq
limit %(size)s::bigint
