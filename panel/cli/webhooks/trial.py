"""An endpoint and its receiver for as long as the demo needs them: what came is verified and timed.

The receiver is that of `weirkeeper webhooks receiver`, in a thread. Whether it may be called is the
operator's word, as for every endpoint; nothing here goes around it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from panel.cli.webhooks.check_url import judge
from panel.cli.webhooks.receiver import Came, Receiving
from shared.clock import SYSTEM
from shared.config.loopback import RECEIVER
from shared.config.settings import Settings
from shared.errors import ConfigurationError, InvalidArguments, NotFound
from shared.ops.desk import Desk
from shared.ops.table import call
from shared.services import web
from shared.services.service import ServiceThread
from shared.services.stop import StopSignal
from shared.webhooks.policy import Policy
from shared.webhooks.records import Created
from shared.webhooks.secret import parse_secret

NAME = "weirkeeper demo"  # what the endpoint is known by, when a demo was killed
HOSTS = (RECEIVER, "127.0.0.1")  # the first that may be called
PATIENCE = 30.0  # seconds from the last event until all must have come
HINT = (
    "start the server with script/server and set no WEIRKEEPER_OUTBOUND_*, or set "
    f"WEIRKEEPER_OUTBOUND_ALLOW={RECEIVER} and WEIRKEEPER_OUTBOUND_HTTP=allowed for it and here"
)


@dataclass(slots=True)
class Trial:
    """What came of it. Durations in seconds.

    Attributes:
        address: the receiver's; "" = there was none.
        why_not: why there was none, or why something is missing.
        came: the first of each event, by its id.
        again: how many came more than once.
        seconds: from the event to its arrival, by id; the clocks of database and receiver.
    """

    address: str = ""
    endpoint_id: str = ""
    why_not: str = ""
    came: dict[str, Came] = field(default_factory=dict)
    again: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    expected: Sequence[str] = ()
    _changed: threading.Condition = field(default_factory=threading.Condition, repr=False)

    @property
    def verified(self) -> list[str]:
        """Ids of the expected events that came and verified."""
        return [one for one in self.expected if one in self.came and not self.came[one].problem]

    @property
    def missing(self) -> int:
        """How many expected events did not come, or did not verify."""
        return len(self.expected) - len(self.verified) if self.address else 0

    def take(self, one: Came) -> None:
        """Note a request."""
        arrived = SYSTEM.wall()
        with self._changed:
            self.again += one.time > 1
            if one.time == 1:
                self.came[one.id] = one
                with suppress(ValueError, KeyError, TypeError):  # not ours, and told as unverified
                    happened = datetime.fromisoformat(json.loads(one.body)["occurred_at"])
                    self.seconds[one.id] = (arrived - happened).total_seconds()
            self._changed.notify_all()

    def await_all(self, event_ids: Sequence[str]) -> bool:
        """Wait until each of these has come; return whether it did."""
        self.expected = event_ids
        with self._changed:
            return self._changed.wait_for(lambda: self.came.keys() >= set(event_ids), PATIENCE)


@contextmanager
def trying(desk: Desk, *event_types: str) -> Iterator[Trial]:
    """Receive an owner's events of these types, until the end of the block.

    What a killed demo left is removed first. Where it cannot be, the trial says why not.
    """
    trial = Trial()
    with ExitStack() as stack:
        _remove_old(desk)
        try:
            stack.enter_context(_receiving(desk, event_types, trial))
        except (ConfigurationError, InvalidArguments) as error:
            trial.why_not = str(error)
        yield trial


@contextmanager
def _receiving(desk: Desk, event_types: Sequence[str], trial: Trial) -> Iterator[None]:
    with ExitStack() as stack:
        bound, made = _endpoint(desk, event_types, stack)
        stack.callback(_remove, desk, made.id)
        trial.address, trial.endpoint_id = web.address(bound), made.id
        receiving = Receiving(parse_secret(made.secret), trial.take)
        stop = StopSignal()
        serving = ServiceThread(
            "receiver", lambda _: web.serve(receiving.app(), bound, stop), stop.fail, stop.request
        )
        stack.callback(serving.stop)
        serving.start()
        yield


def _endpoint(desk: Desk, event_types: Sequence[str], stack: ExitStack) -> tuple[Any, Created]:
    """A bound socket and an endpoint that leads to it, on the first host that may be called.

    Raises:
        InvalidArguments: none may.
        ConfigurationError: there is nothing to seal its secret with.
    """
    policy = Policy(Settings.load().outbound)
    found = [judge(policy, f"http://{host}/", resolve=False) for host in HOSTS]
    host = next((h for h, one in zip(HOSTS, found, strict=True) if one["allowed"]), None)
    if host is None:
        raise InvalidArguments(f"{RECEIVER} may not be called here ({found[0]['why']}); {HINT}")
    bound = stack.enter_context(closing(web.bind(host, 0, "receiver")))
    url = f"http://{web.address(bound)}/"
    given = {"url": url, "event_types": list(event_types), "description": NAME}
    return bound, call(desk, "webhooks.create", given)


def _remove_old(desk: Desk) -> None:
    for one in call(desk, "webhooks.list", {}):
        if one.description == NAME:
            _remove(desk, one.id)


def _remove(desk: Desk, endpoint_id: str) -> None:
    with suppress(NotFound):
        call(desk, "webhooks.delete", {"id": endpoint_id})
