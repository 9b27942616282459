-- Args of one job. Index: job_pkey.
select args from weirkeeper.job where id = %(id)s
