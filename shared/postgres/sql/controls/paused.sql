-- What is paused, since when, and why if nobody did it by hand. A table of a few rows at most.
-- Locks nothing.
select p.what, p.name, p.paused_at, p.quarantine from weirkeeper.paused p order by p.what, p.name
