"""Whatever goes wrong with a webhook, no secret gets where somebody reads it who must not."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import httpx
import pytest

from shared.config.env import Environment
from shared.config.outbound import read_outbound
from shared.postgres.webhooks.endpoints import PostgresWebhooks
from shared.webhooks.policy import Policy
from shared.webhooks.rules import rules_of
from shared.webhooks.sealing import Sealer
from tests.support import receivers as r
from tests.support.canaries import Canaries
from tests.support.cluster import free_port
from tests.support.hooks import LOCAL, Hooks
from tests.support.mail import MailServer
from tests.support.rows import address_when_ready
from tests.support.waiting import until
from workers.pool.tree import children

BROKEN = "HTTP/1.1 {} No\r\nContent-Length: 0\r\n\r\n"
TEAPOT = "check (status is distinct from 418) not valid"  # so that a row cannot be written
CODES = {
    "server_error", "tls_untrusted", "connect_refused", "blocked_target", "response_timeout", "gone",
}  # fmt: skip
ERRORS = "select count(distinct job_id) as n from weirkeeper.attempt where outcome = %s"


class Stack:
    """A whole installation with secrets that can be told apart, and endpoints that all fail."""

    def __init__(self, programs, url: str, mail: MailServer, ca_file: str) -> None:
        self.secrets = {
            name: f"canary-{name}-{secrets.token_hex(16)}"
            for name in ("sealing", "header", "token", "smtp")
        }
        self.secrets["database"] = urlsplit(url).password
        self._programs = programs
        self.env = {
            **LOCAL,
            "WEIRKEEPER_SECRET": self.secrets["sealing"],
            "WEIRKEEPER_SMTP_URL": f"smtp://me:{self.secrets['smtp']}@localhost:{mail.at.split(':')[1]}",
            "WEIRKEEPER_MAIL_FROM": "weirkeeper@example.org",
            "WEIRKEEPER_OUTBOUND_CA": ca_file,
            "WEIRKEEPER_LOG_LEVEL": "debug",
        }
        self.hooks = Hooks(url)
        sealer = Sealer([self.secrets["sealing"]])
        rules = rules_of(Policy(read_outbound(Environment(LOCAL))), sealer)
        self.hooks.webhooks = PostgresWebhooks(self.hooks.conn, rules)

    def start(self, module: str, *arguments: str, **env: str):
        """Start one of our programs in the environment of this installation."""
        return self._programs.start(module, *arguments, env={**self.env, **env})

    def endpoint(self, place: str, owner: str = "me") -> str:
        """An endpoint with a secret of its own, a header that is one, and a token in its URL."""
        made = self.hooks.endpoint(
            owner,
            f"{place}/in?token={self.secrets['token']}",
            headers={"Authorization": f"Bearer {self.secrets['header']}"},
            contact="ann@example.org",
        )
        new = self.hooks.webhooks.rotate_secret(owner, made).secret
        self.secrets[f"endpoint {made}"] = new.removeprefix("whsec_")
        return made

    def number(self, outcome: str) -> int:
        """How many jobs had a run that ended so."""
        return self.hooks.rows(ERRORS, outcome)[0]["n"]

    def codes(self) -> set[str]:
        """What came of requests."""
        rows = self.hooks.rows("select distinct code from weirkeeper.delivery_attempt")
        return {row["code"] for row in rows}


@contextmanager
def refusing_mail(authority: r.Authority) -> Iterator[MailServer]:
    """A mail server that lets nobody log in."""
    context = authority.server("localhost")
    with MailServer(tls_context=context, auth_require_tls=True) as mail:
        mail.login_ok = False
        yield mail


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_no_secret_is_told_anywhere(programs, database_url, tmp_path):
    authority = r.Authority()
    ca_file = authority.write(str(tmp_path / "ca.pem"))
    with ExitStack() as held:
        mail = held.enter_context(refusing_mail(authority))
        stack = Stack(programs, database_url, mail, ca_file)
        held.callback(stack.hooks.close)
        stack.start("relay")
        queue = stack.start("workers", "webhook", WEIRKEEPER_CHILDREN="webhook=4")
        stack.start("workers", "notify")
        stack.start("metrics")

        def place(behaviour, scheme: str = "http", **how) -> str:
            receiver = held.enter_context(r.Receiver(behaviour, **how))
            return f"{scheme}://127.0.0.1:{receiver.port}"

        waiting = r.Recording()
        for status in (500, 410, 418):
            stack.endpoint(place(r.answering(BROKEN.format(status).encode())))
        stack.endpoint(place(r.never_answers))
        stranger = r.Authority().server("127.0.0.1")
        stack.endpoint(place(r.answering(r.OK), "https", context=stranger))
        stack.endpoint(f"http://127.0.0.1:{free_port()}")
        blocked = stack.endpoint(f"http://127.0.0.1:{free_port()}")
        unsealable = stack.endpoint(place(waiting))
        execute = stack.hooks.conn.execute
        execute("update weirkeeper.endpoint set url = replace(url, '127.0.0.1', '10.0.0.1')"
                " where id = %s", (blocked,))  # fmt: skip
        execute("update weirkeeper.endpoint_secret set sealed = sealed || '\\x00'::bytea"
                " where endpoint_id = %s", (unsealable,))  # fmt: skip
        execute(f"alter table weirkeeper.delivery_attempt add constraint teapot {TEAPOT}")
        stack.hooks.event()
        until(lambda: stack.codes() >= CODES, 60, f"each fails its way; {stack.codes()}")
        until(lambda: stack.number("failed") >= 3, 60, "a settle, a seal and a login failed")
        assert waiting.requests == []
        assert {password for _, password in mail.logins} == {stack.secrets["smtp"]}

        last = held.enter_context(r.Receiver(r.never_answers))
        stack.endpoint(f"http://127.0.0.1:{last.port}", "you")
        stack.hooks.event("you")
        canaries = Canaries(stack.secrets, {"token": ["endpoint.url", "delivery_attempt.url"]})
        until(lambda: last.connections, 20, "its request is under way")
        canaries.look_into_command_lines(programs)
        [server] = children(queue.pid)
        for child in children(server):
            os.kill(child, signal.SIGABRT)
        until(lambda: stack.number("crashed") >= 1, 30, "its child died")

        address = address_when_ready(database_url, "metrics")
        canaries.look_into("/metrics", httpx.get(f"http://{address}/metrics").content)
        nowhere = urlsplit(database_url)._replace(path="/nowhere").geturl()
        for arguments, url in ((["check"], ""), (["status"], ""), (["status"], nowhere)):
            env = {"DATABASE_URL": url} if url else {}
            stack.start("panel.cli.main", *arguments, **env).wait(60)
        canaries.look_into_tables(database_url)
        canaries.look_into_files(programs.home)
    assert {"delivery_attempt.url", "attempt.error", "endpoint.headers"} <= canaries.searched
    assert canaries.found == set()
