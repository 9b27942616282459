-- Notes how many events a plan lists. Locks: the row. Index: webhook_replay_pkey.
update weirkeeper.webhook_replay r set total = %(total)s where r.id = %(id)s
