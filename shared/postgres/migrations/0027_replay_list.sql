-- A webhook replay lists its events once, when it is planned; a batch looks up what comes next.
-- breaking: no
--
-- Before, each batch read the whole log for the owner's events: it has no index by owner, since every
-- record would pay for it (docs/decisions/0026). An older release goes on from after_seq, as before.

create table weirkeeper.webhook_replay_event (
  replay_id bigint not null references weirkeeper.webhook_replay on delete cascade,
  seq bigint not null,
  event_id uuid not null,
  primary key (replay_id, seq, event_id)
);
comment on table weirkeeper.webhook_replay_event is
  'What a webhook replay sends, in order; goes when it ends. No events: bookkeeping.';

insert into weirkeeper.webhook_replay_event (replay_id, seq, event_id)
select r.id, v.seq, v.id
from weirkeeper.webhook_replay r
join weirkeeper.event v on v.owner_id = r.owner_id and v.seq > r.after_seq
  and v.occurred_at >= r.since and v.occurred_at < r.until
where r.state in ('planned', 'running');
