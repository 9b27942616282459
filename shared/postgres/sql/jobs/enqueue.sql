-- Adds one job as its kind says, through the one implementation that every language shares.
-- Indexes and locks: kind_pkey, queue_pkey; waits for nobody.
select weirkeeper.enqueue(kind => %(kind)s, args => %(args)s::jsonb, trace => %(trace)s)
