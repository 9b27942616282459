-- Pauses a kind that kills its children, through the one implementation. Locks: its row of `paused`.
select weirkeeper.quarantine(kind => %(kind)s, why => %(why)s)
