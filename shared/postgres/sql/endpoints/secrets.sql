-- Secrets that sign now, newest first. Index: endpoint_secret_pkey.
select s.sealed from weirkeeper.endpoint_secret s
where s.endpoint_id = %(id)s and (s.expires_at is null or s.expires_at > clock_timestamp())
order by s.no desc
limit 5
