-- Keys of the args by which jobs of a kind may be listed; no row = no such kind. Index: kind_pkey.
select k.searchable from weirkeeper.kind k where k.name = %(kind)s
