"""The consumer's side of the sleep lock: how a relay or a queue process sleeps and is woken.

A writer notifies only while the consumer sleeps (SQL function weirkeeper.wake). To sleep, the
consumer takes lock A exclusively ("I want notices"), then tries lock S, which silent writers share
until they end. With both it is asleep: every later writer notifies. Without S it dozes: later
writers notify as well, and it must poll for the silent ones still open. Without A (a sibling of
the same queue holds it) it polls, and hears the sibling's notices too.

One direct connection holds the locks and LISTENs; use it from one thread. Never needed for
correctness: the poll is the net. docs/decisions/0001-sleep-lock.md has the reasons and figures.
"""

from __future__ import annotations

from typing import cast

from psycopg import Error, Notify, sql

from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.failures import translate, translated
from shared.postgres.driver.statements import rendered, statement

RELAY_LOCK = 0


def relay_channel() -> str:
    """Channel of the relay."""
    return rendered("weirkeeper_relay")


def queue_channel(number: int) -> str:
    """Channel of a queue, by `weirkeeper.queue.no`."""
    return f"{rendered('weirkeeper_queue_')}{number}"


class Wakes:
    """Sleeping and being woken, for one consumer.

    Args:
        url: libpq URI, direct (no pooler).
        name: of the session.
        lock_no: 0 for the relay, else `weirkeeper.queue.no`.
        channel: where wakes come in.
    """

    def __init__(self, url: str, name: str, lock_no: int, channel: str) -> None:
        self._url = url
        self._name = name
        self._lock_no = lock_no
        self._channel = channel
        self._conn: Connection | None = None
        self._said: list[str] = []  # by notices that arrived with a reply
        self._dozing = False
        self._asleep = False

    def open(self) -> None:
        """Connect (again) and LISTEN; nothing is held.

        Raises:
            DatabaseUnavailable: try again later.
        """
        self.close()
        conn = connect(self._url, f"{self._name} wakes", Use.DURABLE)
        with translated():
            conn.execute(statement("wakes/session"))
            listen = sql.SQL(statement("wakes/listen"))
            conn.execute(listen.format(channel=sql.Identifier(self._channel)))
        conn.add_notify_handler(self._keep)
        self._conn = conn

    @property
    def connection(self) -> Connection:
        """The open connection.

        Raises:
            RuntimeError: `open` was not called.
        """
        if self._conn is None:
            raise RuntimeError("Wakes is not open")
        return self._conn

    @property
    def backend_pid(self) -> int:
        """Server process of the session, for the process row."""
        return self.connection.info.backend_pid

    def fileno(self) -> int:
        """Readable when a notice, or the end of the session, has arrived."""
        return self.connection.fileno()

    def drain(self) -> list[str]:
        """Take the notices that arrived; return what each said ("" = only a wake).

        By libpq's own calls: a job on an idle system waits for nothing else just now, and the
        driver's generator takes five times as long.

        Raises:
            DatabaseUnavailable: the session ended; `open` again.
        """
        pgconn = self.connection.pgconn
        said, self._said = self._said, []
        try:
            pgconn.consume_input()
            while (notice := pgconn.notifies()) is not None:
                said.append(notice.extra.decode())
        except Error as error:
            raise translate(error) from error
        return said

    def fall_asleep(self) -> bool:
        """Try to sleep. Call when a look found nothing; then look once more before waiting.

        Returns:
            True: asleep; whatever is written from now on is notified. False: poll.

        Raises:
            DatabaseUnavailable: the session ended; `open` again.
        """
        if self._asleep:
            return True
        with translated():
            row = self.connection.execute(
                statement("wakes/fall_asleep"), {"lock_no": self._lock_no, "dozing": self._dozing}
            ).fetchone()
        self._dozing, self._asleep = cast("tuple[bool, bool]", row)
        return self._asleep

    def wake_up(self) -> None:
        """Release the locks, so that writers are silent again. Call when there is more to do.

        Not needed for one job now and then: staying "asleep" while handling it costs nothing.
        """
        if self._dozing or self._asleep:
            with translated():
                self.connection.execute(statement("wakes/wake_up"))
            self._dozing = self._asleep = False

    def close(self) -> None:
        """End the session, and with it the locks."""
        if self._conn is not None:
            self._conn.close()
        self._conn = None
        self._said.clear()
        self._dozing = self._asleep = False

    def _keep(self, notice: Notify) -> None:
        self._said.append(notice.payload)
