-- Notes a migration in the transaction that ran it.
insert into weirkeeper.migration (version, name, checksum, breaking)
values (%(version)s, %(name)s, %(checksum)s, %(breaking)s)
