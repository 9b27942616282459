-- Begins a replay; see the function (migration events). Indexes: as for replays/plan.
select weirkeeper.start_replay(
  %(subscription)s, %(types)s::text[], %(since)s::timestamptz, %(until)s::timestamptz,
  %(planned)s::bigint, %(asked_by)s)
