-- Kinds whose jobs are run by another program than our own children.
-- breaking: no

alter table weirkeeper.kind add column command text[] not null default '{}';
comment on column weirkeeper.kind.command is
  'Program and arguments that run its jobs, of the kind or its queue; empty = a handler does.';
