-- Opens a concurrency key, or closes it until a moment, through the one implementation that every
-- language shares. Locks: the key. Index: key_pkey.
select weirkeeper.key_open(%(name)s, %(open_at)s::timestamptz)
