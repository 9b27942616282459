-- Counts claims of a kind with a rate, under the lock of claims/rate_room.
insert into weirkeeper.rate_start (kind, n) values (%(kind)s, %(n)s)
