-- Why: our own database, so that nothing of ours lies in `postgres`. Run once, in single-user
-- mode, straight after initdb. Locks: none that matter, nobody else is there. Index: none.
create database weirkeeper
