-- One process may serve several queues.
-- breaking: no

alter table weirkeeper.process add column queues jsonb
  check (queues is null or jsonb_typeof(queues) = 'object');
comment on column weirkeeper.process.queues is
  'Children by queue of a process that serves several; null = it serves the one in `queue`.';
