-- Quarantine: a kind that kills its children is paused by the queue process that saw it.
-- breaking: no
--
-- Like a pause by hand it moves no job: every claim skips the kind's lanes, and weirkeeper.resume
-- lifts it. A kind that somebody has paused already stays as it is.

alter table weirkeeper.paused
  add column quarantine text
    check (quarantine is null or what = 'kind' and length(quarantine) <= 500);
comment on column weirkeeper.paused.quarantine is
  'Why a kind was paused without anybody''s doing: how its children died. Null = by hand.';

create function weirkeeper.quarantine(kind text, why text) returns boolean
language plpgsql as $$
begin
  insert into weirkeeper.paused (what, name, quarantine)
  values ('kind', quarantine.kind, quarantine.why)
  on conflict do nothing;
  return found;
end $$;
comment on function weirkeeper.quarantine is
  'Starts no more jobs of a kind that kills its children; true = it was not paused. resume lifts it.';
