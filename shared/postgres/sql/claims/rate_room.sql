-- How many more jobs of a kind may start now, or in how many seconds the next. Locks: the kind's row,
-- until the claim is committed. Indexes: kind_pkey, rate_start_at.
select room, opens from weirkeeper.rate_room(%(kind)s)
