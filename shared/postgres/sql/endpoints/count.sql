-- How many endpoints an owner has. Index: endpoint_owner.
select count(*) from weirkeeper.endpoint e where e.owner_id = %(owner_id)s
