-- Every migration applied, oldest first. Index: migration_pkey.
select version, name, checksum, breaking from weirkeeper.migration order by version
