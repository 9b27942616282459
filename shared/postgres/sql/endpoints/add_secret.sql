-- Adds a secret, the newest. Locks: none.
insert into weirkeeper.endpoint_secret (endpoint_id, sealed) values (%(id)s, %(sealed)s)
