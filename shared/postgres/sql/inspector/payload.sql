-- Args of one job, and the command of its kind. Indexes: job_pkey, kind_pkey.
select j.args, k.command
from weirkeeper.job j
join weirkeeper.kind k on k.name = j.kind
where j.id = %(id)s
