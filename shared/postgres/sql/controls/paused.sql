-- What is paused, since when. A table of a few rows at most. Locks nothing.
select p.what, p.name, p.paused_at from weirkeeper.paused p order by p.what, p.name
