-- The one thing that exists before the first migration: the schema and the list of what was applied.
-- Locks: none worth naming; runs under the migrator's advisory lock.
create schema if not exists weirkeeper;
comment on schema weirkeeper is 'Weirkeeper, the engine: events, jobs, processes.';
create table if not exists weirkeeper.migration (
  version integer primary key,
  name text not null,
  checksum text not null,
  breaking boolean not null,
  applied_at timestamptz not null default now()
);
comment on table weirkeeper.migration is 'Migrations applied. No events: the schema''s own log.';
