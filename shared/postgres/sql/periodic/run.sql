-- An extra run; null = no such periodic. Index: periodic_pkey.
select weirkeeper.run_periodic(%(name)s)
