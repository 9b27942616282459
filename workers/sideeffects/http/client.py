"""The guarded HTTP client: one call to an address that a stranger gave, whatever answers there.

    client = GuardedClient(Policy(settings.outbound), ca_file=settings.outbound.ca_file)
    exchange = client.send(Outgoing("POST", url, headers, body), until=lease_end)

Before it: handlers of webhooks, suppliers and fetch. After it: `transport`, `backend` (resolve,
judge, connect), `streams` (deadline, allowance, TLS). What the other side does comes back as an
Exchange; only a fault of our own is raised. Ends by the deadline, keeps at most what `Limits` say,
follows no redirect, retries nothing, and can be used again and again, also by several threads.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401  (sockets and TLS look for it at the first name: here, it is shared)

import httpcore
import httpx

from shared.clock import SYSTEM, Clock
from shared.services.resolver import Resolver, SystemResolver
from shared.webhooks.codes import BLOCKED, ERRORS
from shared.webhooks.denied import Denied
from shared.webhooks.policy import Policy
from shared.webhooks.urls import Target
from workers.sideeffects.http import kept
from workers.sideeffects.http.attempt import Attempt, Failed
from workers.sideeffects.http.backend import GuardedBackend
from workers.sideeffects.http.certificates import trust
from workers.sideeffects.http.exchange import WEBHOOK, Ended, Exchange, Limits, Outgoing
from workers.sideeffects.http.transport import GuardedTransport

LARGE_HEAD = 64 * 1024  # bytes without a whole head: what h11 then complains about is the size


class GuardedClient:
    """Makes calls.

    Args:
        policy: what may be called.
        ca_file: further authorities to trust (PEM); "" = none.
        resolver: finds addresses; None = the system's.
        clock: tells the time.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        ca_file: str = "",
        resolver: Resolver | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._policy = policy
        self._context = trust(ca_file)
        self._resolver = resolver or SystemResolver()
        self._clock = clock

    def send(
        self, outgoing: Outgoing, *, limits: Limits = WEBHOOK, until: float | None = None
    ) -> Exchange:
        """Make one call.

        Args:
            outgoing: the request.
            limits: how much it may take.
            until: moment of the monotonic clock that it must not outlive; None = `limits` alone.

        Returns:
            The answer, or why there was none.

        Raises:
            httpcore.LocalProtocolError: a header that cannot be sent; check it beforehand.
        """
        attempt = Attempt(limits, self._clock, until)
        try:
            target = self._policy.check_url(outgoing.url)
            return self._exchange(outgoing, target, attempt, limits)
        except Denied as denied:
            return Exchange(
                None, BLOCKED, denied.rule, denied.why, by_url=True, hidden=denied.address
            )
        except Failed as failed:
            return _without_answer(failed, attempt)
        except httpx.InvalidURL as error:  # another parser than ours: it must not be guessed at
            told = "the URL can be read in two ways"
            return Exchange(None, BLOCKED, "url_parse", told, by_url=True, hidden=str(error))
        except httpcore.RemoteProtocolError as error:
            return _without_answer(Failed(_strange(attempt), str(error)), attempt)
        except httpcore.NetworkError as error:
            return _without_answer(Failed("connection_reset", str(error)), attempt)

    def _exchange(
        self, outgoing: Outgoing, target: Target, attempt: Attempt, limits: Limits
    ) -> Exchange:
        network = GuardedBackend(target, attempt, self._policy, self._resolver)
        with GuardedTransport(network, self._context) as transport:
            request = httpx.Request(
                outgoing.method, target.url, headers=list(outgoing.headers), content=outgoing.body
            )
            answer = transport.handle_request(request)
            attempt.enter("body")
            attempt.shorten(limits.body_seconds)
            body, ended = _body(answer, limits.body_bytes)
            attempt.enter("")
            return Exchange(
                answer.status_code,
                times=attempt.times,
                headers=kept.headers(answer.headers.raw),
                retry_after=answer.headers.get("retry-after", ""),
                body=body,
                ended=ended,
                peer=attempt.peer,
            )


def _body(answer: httpx.Response, most: int) -> tuple[bytes, Ended]:
    """(the beginning of the body, how it ended): nothing that goes wrong here matters any more."""
    got = bytearray()
    try:
        for piece in answer.iter_raw():
            got += piece[: most + 1 - len(got)]
            if len(got) > most:
                return bytes(got[:most]), "too_large"
    except Failed as failed:
        late = failed.code == "response_timeout"
        ended: Ended = "timeout" if late else _CUT.get(failed.code, "cut")
        return bytes(got), ended
    except (httpcore.RemoteProtocolError, httpcore.NetworkError):
        return bytes(got), "cut"
    return bytes(got), "whole"


_CUT: dict[str, Ended] = {"response_too_large": "too_large"}


def _strange(attempt: Attempt) -> str:
    """What it means that no HTTP could be made of what came."""
    if attempt.hung_up:
        return "connection_reset"
    return "response_too_large" if attempt.received > LARGE_HEAD else "protocol_error"


def _without_answer(failed: Failed, attempt: Attempt) -> Exchange:
    attempt.enter("")
    return Exchange(
        None,
        failed.code,
        failed.rule,
        failed.told or ERRORS[failed.code][1],
        hidden=failed.hidden,
        times=attempt.times,
        peer=attempt.peer,
    )
