-- Makes the session's staging table, or empties it. Locks: none that others see.
select weirkeeper.open_staging()
