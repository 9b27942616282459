-- Replaces a sealed secret by the same one sealed anew, unless somebody was faster. Locks: the row.
-- Index: endpoint_secret_pkey.
update weirkeeper.endpoint_secret s set sealed = %(anew)s
where s.endpoint_id = %(endpoint)s and s.no = %(no)s and s.sealed = %(sealed)s
