-- Starts a tick that is due, or only moves on; see the function (0006). Index: periodic_pkey.
select weirkeeper.fire_periodic(%(name)s, %(tick)s, %(following)s, %(skip)s)
