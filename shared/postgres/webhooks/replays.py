"""ADAPTER of the port Webhooks: replays, planned with a count, run in batches, ended at any time.

Used by shared.postgres.webhooks.endpoints, which is the whole port, and by the handler of
`webhook.replay`. A plan lists its events: the log is read once, a stretch a statement, since no
index leads from an owner to his events (docs/decisions/0026). How far one has come stands in its
row, moved on in the transaction that starts the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from shared.errors import Conflict, InvalidArguments, NotFound
from shared.events.globs import matches
from shared.postgres.driver.failures import translated
from shared.postgres.webhooks.deliveries import PostgresDeliveries
from shared.postgres.webhooks.ids import number
from shared.postgres.webhooks.rows import NONE, Rows, replay
from shared.webhooks.body import Format, Message
from shared.webhooks.records import Replay

REPLAYED = 4  # priority of what is replayed: the last
STRETCH = 4096  # pages of the log that one statement reads: 32 MiB, some 20 ms


class PostgresReplays(Rows):
    """Plans, starts, ends and tells of replays."""

    def plan_replay(
        self, owner_id: str, endpoint_id: str, since: str, until: str, *, failed_only: bool
    ) -> Replay:
        """Count what a replay would send; see shared.webhooks.port.Webhooks."""
        begin, end = _moment("since", since), _moment("until", until)
        if begin >= end:
            raise InvalidArguments(f"until: expected a moment after since; got {until}")
        who = {"id": number(endpoint_id), "owner_id": owner_id}
        with translated(), self._conn.transaction():
            endpoint = self._one("webhook_replays/endpoint", who)
            if endpoint is None:
                raise NotFound(
                    f"endpoint: expected the id of one of yours; got {endpoint_id[:40]!r}; {NONE}"
                )
            params = {
                **who,
                "since": begin,
                "until": end,
                "failed_only": failed_only,
            }
            plan = self._one("webhook_replays/plan", params)[0]
            self._collect(plan, self._types(endpoint[0]))
            return self.replay(owner_id, plan)

    def start_replay(self, owner_id: str, replay_id: str) -> Replay:
        """Run a plan."""
        params = {"id": number(replay_id), "owner_id": owner_id}
        with translated():
            started = self._one("webhook_replays/start", params)
        found = self.replay(owner_id, replay_id)
        if started is None:
            raise Conflict(f"replay {replay_id}: expected a plan; it is {found.state}")
        return found

    def cancel_replay(self, owner_id: str, replay_id: str) -> Replay:
        """Send no more of it."""
        params = {"id": number(replay_id), "owner_id": owner_id}
        with translated():
            self._run("webhook_replays/cancel", params)
            self._forget(params)
        return self.replay(owner_id, replay_id)

    def replay(self, owner_id: str, replay_id: str) -> Replay:
        """How far it has come."""
        params = {"id": number(replay_id), "owner_id": owner_id}
        with translated():
            row = self._one("webhook_replays/get", params)
        if row is None:
            raise NotFound(
                f"replay: expected the id of one of yours; got {replay_id[:40]!r}; {NONE}"
            )
        return replay(row)

    def send_batch(
        self, replay_id: int, limit: int, body: Callable[[Message, Format], bytes]
    ) -> bool:
        """Send the next events of a running replay and note how far it has come, together.

        Args:
            replay_id: of the replay.
            limit: events at most.
            body: (message, format of the endpoint) → bytes to send.

        Returns:
            Whether there is more to send.
        """
        with translated(), self._conn.transaction():
            row: Any = self._one("webhook_replays/next", {"id": replay_id})
            if row is None:
                return False
            endpoint_id, failed_only, after_seq, form, patterns = row
            params = {
                "id": replay_id,
                "endpoint_id": endpoint_id,
                "failed_only": failed_only,
                "after_seq": after_seq,
                "types": self._types(patterns),
                "limit": limit,
            }
            events = self._all("webhook_replays/events", params)
            messages = [Message(*found[1:-1]) for found in events if found[-1]]
            deliveries = PostgresDeliveries(self._conn)
            started = [
                deliveries.add(endpoint_id, one.id, body(one, form), "replay", REPLAYED)
                for one in messages
            ]
            sent = sum(one is not None for one in started)
            done = len(events) < limit
            last = events[-1][0] if events else after_seq
            params = {"id": replay_id, "after_seq": last, "sent": sent, "done": done}
            self._run("webhook_replays/advance", params)
            if done:
                self._forget(params)
        return not done

    def _forget(self, params: Mapping[str, Any]) -> None:
        """List nothing any more, where a replay has ended."""
        self._run("webhook_replays/forget", params)

    def _collect(self, plan: str, types: list[str]) -> None:
        """List the events of a plan, and note how many they are."""
        total = 0
        pages: int = self._one("webhook_replays/pages", {})[0]
        for page in range(0, pages, STRETCH):
            params = {"id": plan, "first": f"({page},0)", "behind": f"({page + STRETCH},0)"}
            total += self._run("webhook_replays/collect", {**params, "types": types})
        self._run("webhook_replays/counted", {"id": plan, "total": total})

    def _types(self, patterns: list[str]) -> list[str]:
        """Names of the declared types that an endpoint wants."""
        return [
            name
            for name, _ in self.event_types()
            if any(matches(pattern, name) for pattern in patterns)
        ]


def _moment(what: str, given: str) -> datetime:
    try:
        read = datetime.fromisoformat(given)
        moment = read.astimezone(UTC) if read.tzinfo else None
    except (ValueError, OverflowError):  # the last: there is no such moment in UTC
        moment = None
    if moment is None:
        raise InvalidArguments(
            f"{what}: expected a moment such as 2026-01-31T12:00:00Z; got {given!r}; "
            "give it with its time zone"
        )
    return moment
