"""What may be used where: threads, processes, clocks, chance, the environment, the outside.

Each rule names what it is about by full dotted names (through any alias, imported anywhere, also
inside a function) and the only places that may touch it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest

from tests.gates.source import Source, complaints, everything, planted, product


@dataclass(frozen=True)
class Rule:
    """Names (globs) that only some places may use, why, and code that breaks it."""

    what: str
    names: tuple[str, ...]
    places: tuple[str, ...]
    broken: tuple[str, ...]

    def gate(self, source: Source) -> Iterator[str]:
        """Complain about each use outside the places."""
        if source.within(self.places):
            return
        for line, name in source.names():
            if any(fnmatchcase(name, glob) for glob in self.names):
                yield f"{source.path}:{line}: {name}: {self.what}"


RULES = (
    Rule(
        "threads are started by shared/services alone",
        ("threading.Thread", "threading.Timer", "_thread.*", "concurrent.futures.*"),
        ("shared/services/",),
        (
            "import threading\nthreading.Thread(target=print).start()",
            "from threading import Thread as T\nT()",
            "def late():\n    from concurrent.futures import ThreadPoolExecutor",
        ),
    ),
    Rule(
        "no tasks of an event loop that nobody owns; the one of async handlers is in services",
        ("*.create_task", "*.ensure_future", "asyncio.TaskGroup", "asyncio.run_coroutine_*"),
        ("shared/services/",),
        (
            "import asyncio\nasyncio.create_task(work())",
            "async def f(loop):\n    loop.create_task(work())",
            "import asyncio\nasync def f():\n    async with asyncio.TaskGroup() as g: ...",
        ),
    ),
    Rule(
        "child processes are the pool's",
        ("multiprocess", "multiprocess.*", "multiprocessing", "multiprocessing.*", "os.fork*"),
        ("workers/pool/",),
        ("import multiprocess", "from os import fork\nfork()", "import os\nos.forkpty()"),
    ),
    Rule(
        "programs are started by the pool and by weirkeeper/server",
        ("subprocess", "subprocess.*", "os.posix_spawn*", "os.spawn*", "pty.*"),
        ("workers/pool/", "weirkeeper/server/"),
        (
            "import subprocess as sp\nsp.Popen(['x'])",
            "from subprocess import run\nrun(['x'], timeout=1)",
            "import os\nos.posix_spawn('x', ['x'], {})",
        ),
    ),
    Rule(
        "a process becomes another one in the identity check, the command line and the server",
        ("os.exec*",),
        ("weirkeeper/identity.py", "weirkeeper/server/", "panel/cli/", "workers/pool/"),
        ("import os\nos.execv('x', ['x'])",),
    ),
    Rule(
        "clocks are read by shared/clock.py; take a Clock",
        (
            "time.time*",
            "time.monotonic*",
            "time.perf_counter*",
            "time.clock_*",
            "time.localtime",
            "time.gmtime",
            "datetime.datetime.now",
            "datetime.datetime.utcnow",
            "datetime.datetime.today",
            "datetime.date.today",
        ),
        # The child protocol is one file without any import of ours.
        ("shared/clock.py", "weirkeeper/child.py"),
        (
            "import time\ntime.monotonic()",
            "from time import time as now\nnow()",
            "from datetime import datetime\ndatetime.now()",
            "import datetime as d\nd.datetime.now(d.UTC)",
        ),
    ),
    Rule(
        "chance comes from shared/backoff.py; passwords from weirkeeper/server",
        ("random", "random.*", "secrets", "secrets.*", "os.urandom", "uuid.uuid1", "uuid.uuid4"),
        ("shared/backoff.py", "weirkeeper/server/"),
        ("import random", "from secrets import randbits", "import uuid\nuuid.uuid4()"),
    ),
    Rule(
        "the environment is read by shared/config/env.py alone",
        ("os.environ", "os.environ.*", "os.environb", "os.getenv*", "os.putenv", "os.unsetenv"),
        ("shared/config/env.py",),
        (
            "import os\nx = os.environ['X']",
            "from os import getenv as g\ng('X')",
            "import os\nos.environ.get('X')",
        ),
    ),
    Rule(
        "the database driver is the adapters' (shared/postgres)",
        ("psycopg", "psycopg.*", "psycopg_pool*", "asyncpg*", "sqlalchemy*"),
        ("shared/postgres/",),
        ("import psycopg", "def f():\n    from psycopg.rows import dict_row"),
    ),
    Rule(
        "transactions are begun by the adapters",
        ("*.transaction", "*.commit", "*.rollback"),
        ("shared/postgres/",),
        ("with conn.transaction():\n    write()", "def f(self):\n    self.conn.commit()"),
    ),
    Rule(
        "the outside is reached by workers/sideeffects alone",
        (
            "httpx",
            "httpx.*",
            "httpcore",
            "httpcore.*",
            "smtplib",
            "smtplib.*",
            "requests*",
            "urllib.request*",
            "http.client*",
        ),
        ("workers/sideeffects/",),
        ("import httpx", "from smtplib import SMTP", "import urllib.request"),
    ),
    Rule(
        "Prometheus is known to metrics alone",
        ("prometheus_client", "prometheus_client.*"),
        ("metrics/",),
        ("import prometheus_client", "from prometheus_client import Counter"),
    ),
    Rule(
        "retries are the job layer's",
        ("tenacity*", "stamina*", "retrying*", "urllib3.util.retry*", "urllib3.Retry"),
        (),
        ("import tenacity", "from stamina import retry"),
    ),
    Rule(
        "nothing that runs data as code",
        (
            "pickle*",
            "dill*",
            "cloudpickle*",
            "shelve*",
            "marshal*",
            "yaml.load",
            "yaml.unsafe_load",
            "yaml.full_load",
            "eval",
            "exec",
            "builtins.eval",
            "builtins.exec",
            "os.system",
            "os.popen",
            "tempfile.mktemp",
        ),
        (),
        (
            "import pickle",
            "from marshal import loads",
            "import yaml\nyaml.load('x')",
            "eval('1')",
            "from os import system as s\ns('x')",
            "import tempfile\ntempfile.mktemp()",
        ),
    ),
)
SLEEP = Rule(
    "no sleeps that hope: wait on a condition with a deadline",
    ("time.sleep", "asyncio.sleep"),
    # The last ones are jobs and modules that take long, for others to end.
    (
        "tests/support/waiting.py",
        "tests/support/pool_child.py",
        "bench/support/application.py",
        "tests/support/app.py",
        "tests/support/context_app.py",
        "tests/support/slow_handlers.py",
        "tests/support/shop_handlers.py",
    ),
    ("import time\ntime.sleep(1)", "from time import sleep\nsleep(0.1)"),
)


def names(rule: Rule) -> str:
    return rule.names[0]


@pytest.mark.parametrize("rule", RULES, ids=names)
def test_only_its_places_use_it(rule):
    assert complaints(rule.gate, product()) == []


def test_nobody_sleeps():
    assert complaints(SLEEP.gate, everything()) == []


@pytest.mark.parametrize("rule", [*RULES, SLEEP], ids=names)
def test_it_is_red_on_planted_code(rule):
    for text in rule.broken:
        assert list(rule.gate(planted(text))), text
        for place in rule.places:
            inside = place + "planted.py" if place.endswith("/") else place
            assert not list(rule.gate(planted(text, inside))), inside


def test_it_is_green_on_look_alikes():
    text = """
        import threading
        lock = threading.Lock()
        class Job:
            def time(self): return self.clock.monotonic()
        "os.environ in a docstring"
    """
    assert not [said for rule in RULES for said in rule.gate(planted(text))]
