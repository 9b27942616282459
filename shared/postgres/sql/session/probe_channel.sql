-- A channel that nobody else has, to try whether notices arrive.
select 'weirkeeper_probe_' || replace(gen_random_uuid()::text, '-', '')
