-- How many pages the log of events has now.
select pg_relation_size('weirkeeper.event') / current_setting('block_size')::integer
