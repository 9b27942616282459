-- Locks what `retire` removes, before that looks: a tick that fires at this moment has ended then, and is
-- seen; seen by the foreign key alone, it would refuse the removal. Locks: the rows, in order of their names.
-- Index: periodic_pkey.
select p.name from weirkeeper.periodic p
where p.name <> all (%(names)s::text[])
order by p.name for update
