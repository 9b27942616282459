-- Whether any migration was ever applied here. Index: pg_class's own.
select to_regclass('weirkeeper.migration') is not null
