-- Two generations side by side: asking processes of one to rest; and the last success of a periodic
-- job, kept when the job itself is pruned.
-- breaking: no

alter table weirkeeper.periodic add column last_success_at timestamptz;
comment on column weirkeeper.periodic.last_success_at is
  'End of the last start that completed and has been pruned; newer ones are found by their jobs.';
