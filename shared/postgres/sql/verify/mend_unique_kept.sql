-- Lets such jobs give it up, if that is still their state. Locks: the rows. Indexes: unique_key_job_id_key,
-- job_pkey, attempt_pkey.
with gone as (
  delete from weirkeeper.unique_key u
  using weirkeeper.job j
  where u.job_id = any (%(ids)s::text[]::bigint[]) and j.id = u.job_id
    and (select l.state in ('discarded', 'cancelled') and (l.state = any (j.unique_states)) is not true
         from weirkeeper.attempt l where l.job_id = u.job_id order by l.run desc limit 1)
  returning u.job_id
)
select g.job_id::text, 'given up' from gone g
