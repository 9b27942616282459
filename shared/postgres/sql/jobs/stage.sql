-- Streams rows (a number from 1, a JSON object) into the session's staging table. No index, no log.
copy pg_temp.weirkeeper_staging (n, args) from stdin
