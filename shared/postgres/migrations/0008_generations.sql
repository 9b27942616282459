-- Two generations side by side: whose release a process is, and whether it was asked to rest; and the
-- last success of a periodic job, kept when the job itself is pruned.
-- breaking: no

alter table weirkeeper.process
  add column generation text not null default '' check (length(generation) <= 63),
  add column rest_asked_at timestamptz;
comment on column weirkeeper.process.generation is
  'The release that the process is of (WEIRKEEPER_GENERATION, else the version).';
comment on column weirkeeper.process.rest_asked_at is
  'Since when it is asked to start nothing more; null = it works. Read at each beat.';

alter table weirkeeper.periodic add column last_success_at timestamptz;
comment on column weirkeeper.periodic.last_success_at is
  'End of the last start that completed and has been pruned; newer ones are found by their jobs.';
