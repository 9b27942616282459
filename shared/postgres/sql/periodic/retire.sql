-- Removes periodic jobs that the application does not declare any more, with their ticks; their
-- jobs stay as long as others. Index: periodic_tick_pkey, periodic_pkey.
with gone as (
  select p.name from weirkeeper.periodic p where p.name <> all (%(names)s::text[])
), ticks as (
  delete from weirkeeper.periodic_tick t using gone g where t.name = g.name
)
delete from weirkeeper.periodic p using gone g where p.name = g.name
