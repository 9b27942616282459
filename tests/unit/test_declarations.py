"""What an application declares: refused at once, with the name, when it cannot work."""

from __future__ import annotations

import signal
import sys

import pytest

from shared.app import App, load_app
from shared.backoff import Backoff
from shared.config.queues import QUEUES, Queue
from shared.errors import ConfigurationError
from shared.events.subscriptions import Subscription
from shared.events.type import EventType
from shared.jobs.handler import load_handler
from shared.jobs.hooks import load_hooks
from shared.jobs.kinds import Kind
from shared.jobs.outages import Outage
from shared.jobs.periodic import Periodic

CHANGED = EventType("shop.order.paid", "An order was paid.", "order id")
MAIL = Kind("shop.mail", queue="notify", handler="shop.jobs:mail")
DAILY = Periodic("daily", "shop.mail", every=86_400)
SUB = Subscription("shop.ship", ("shop.order.*",), queue="notify", handler="shop.jobs:ship")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: Kind("", "q", "a:b"), "kind name: expected dotted lower-case words"),
        (lambda: Kind("Mail", "q", "a:b"), "kind name"),
        (lambda: Kind("a" * 64, "q", "a:b"), "at most 63 characters"),
        (
            lambda: App(kinds=(Kind("mail", "notify"),)).check(),
            'kind mail: handler: expected "module:function", or a command of the kind or its queue',
        ),
        (
            lambda: Kind("mail", "q", "a:b", command=["x"]),
            "handler: expected none beside a command",
        ),
        (
            lambda: Kind("mail", "q", command=["x"], database=False),
            "database: expected True beside",
        ),
        (lambda: Kind("mail", "q", "a:b", database=None), "database: expected True or False"),
        (lambda: Kind("mail", "q", "a:b", outage=Outage()), "outage: expected exceptions that"),
        (
            lambda: Kind("mail", "q", command=["x"], outage=Outage((OSError,))),
            "outage: expected no errors beside a command",
        ),
        (lambda: Kind("mail", "q", command="x y"), "kind mail: command: expected a list of words"),
        (lambda: Kind("mail", "q", command=["x", 7]), "kind mail: command: expected a list of"),
        (lambda: Kind("mail", "q", command=["bin/x"]), "an absolute path or the name of a program"),
        (lambda: Kind("mail", "q", command=[""]), "kind mail: command: expected a list of words"),
        (
            lambda: Kind("mail", "q", command=["x\0"]),
            "kind mail: command: expected a list of words",
        ),
        (lambda: Kind("mail", "q", command=["x" * 9000]), "of at most 8192 characters"),
        (lambda: Kind("mail", "q", "a:b", environment=["X"]), "expected none without a command"),
        (lambda: Queue("q", command=["x"], environment=["X Y"]), "queue q: environment: expected"),
        (lambda: Queue("q", command=["x"], environment=["WEIRKEEPER_EPOCH=1"]), "is not yours"),
        (lambda: Queue("q", command={"x": 1}), "queue q: command: expected a list of words"),
        (
            lambda: App(
                queues=(Queue("q", command=["x"]),), kinds=(Kind("m", "q", "a:b"),)
            ).check(),
            "kind m: handler: expected none, for queue q names a command that runs all its kinds",
        ),
        (
            lambda: App(
                queues=(Queue("q", command=["x"]),), kinds=(Kind("m", "q", command=["y"]),)
            ).check(),
            "kind m: command: expected none, for queue q names a command that runs all its kinds",
        ),
        (lambda: Kind("mail", "q", "module.function"), "kind mail: handler"),
        (lambda: Kind("mail", "q", "a:b", max_attempts=0), "kind mail: max_attempts"),
        (lambda: Kind("mail", "q", "a:b", timeout=0), "kind mail: timeout"),
        (lambda: Kind("mail", "q", "a:b", timeout=float("nan")), "kind mail: timeout"),
        (lambda: Kind(None, "q", "a:b"), "kind name"),
        (lambda: Kind("mail", "q", 7), "kind mail: handler"),
        (lambda: Kind("mail", [], "a:b"), "kind mail: queue: expected the name of a queue; got []"),
        (lambda: Kind("mail", "q", "a:b", max_attempts=2**31), "whole number from 1 to 2147483647"),
        (lambda: Kind("mail", "q", "a:b", max_attempts=True), "kind mail: max_attempts"),
        (lambda: Kind("mail", "q", "a:b", timeout="5"), "kind mail: timeout: expected more than 0"),
        (lambda: Kind("mail", "q", "a:b", backoff=None), "kind mail: backoff: expected a Backoff"),
        (lambda: Kind("mail", "q", "a:b", backoff=30), "kind mail: backoff: expected a Backoff"),
        (lambda: Kind("mail", "q", "a:b", fair="no"), "kind mail: fair: expected True or False"),
        (lambda: Kind("mail", "q", "a:b", awaited="no"), "kind mail: awaited: expected True or"),
        (
            lambda: Kind("mail", "q", "a:b", max_per_key=2**31),
            "mail: max_per_key: expected a whole",
        ),
        (lambda: Kind("mail", "q", "a:b", max_per_key=True), "mail: max_per_key: expected a whole"),
        (lambda: Kind("mail", "q", "a:b", searchable=(1,)), "kind mail: searchable: expected a"),
        (lambda: Backoff(base=-1), "backoff: base: expected 0 s to ten years; got -1"),
        (lambda: Backoff(base="1"), "backoff: base: expected 0 s to ten years; got '1'"),
        (lambda: Backoff(cap=float("inf")), "backoff: cap: expected 0 s to ten years; got inf"),
        (lambda: Backoff(cap=float("nan")), "backoff: cap: expected 0 s to ten years; got nan"),
        (lambda: Backoff(factor=0.5), "backoff: factor: expected a number, 1 or more; got 0.5"),
        (lambda: Backoff(factor=float("inf")), "backoff: factor: expected a number, 1 or more"),
        (lambda: Backoff(steps=[1, 2]), "backoff: steps: expected a tuple of seconds; got [1, 2]"),
        (lambda: Backoff(steps=(1, "2")), "backoff: steps: expected 0 s to ten years; got '2'"),
        (lambda: Queue("a", timeout="5"), "queue a: timeout: expected more than 0 s"),
        (lambda: Queue("a", children="5"), "queue a: children: expected 1 to 1000; got '5'"),
        (lambda: Queue(None), "queue name"),
        (lambda: App(kinds=(None,)), "App: kinds: expected a tuple of Kind(…); got None"),
        (lambda: App(kinds="abc"), "App: kinds: expected a tuple of Kind(…); got 'abc'"),
        (lambda: App(kinds=MAIL), "App: kinds"),
        (lambda: App(subscriptions=(MAIL,)), "App: subscriptions"),
        (lambda: Queue("9"), "queue name"),
        (lambda: Queue("web-hook"), "queue name"),
        (lambda: Queue("a", children=0), "queue a: children: expected 1 to 1000; got 0"),
        (lambda: Queue("a", timeout=-1), "queue a: timeout"),
        (lambda: Queue("a", poll=0), "queue a: poll"),
        (lambda: EventType("Shop", "x", "x"), "event type: expected"),
        (lambda: EventType("shop", "x", "x", exposure="all"), "event type shop: exposure"),
        (lambda: EventType("", "x", "x"), "event type: expected dotted lower-case words"),
        (lambda: EventType(None, "x", "x"), "event type: expected dotted lower-case words"),
        (lambda: EventType("a" * 64, "x", "x"), "at most 63 characters"),
        (lambda: EventType("shop", "", "x"), "event type shop: description: expected a few words"),
        (lambda: EventType("shop", "x", " "), "event type shop: subject: expected a few words"),
        (lambda: EventType("shop", "x", None), "event type shop: subject: expected a few words"),
        (lambda: Subscription("s", ("",), "q", "a:b"), "subscription s: types: expected dotted"),
        (lambda: Subscription("s", (None,), "q", "a:b"), "subscription s: types: expected dotted"),
        (lambda: App(event_types=(None,)), "App: event_types: expected a tuple of EventType"),
        (lambda: App(subscriptions=(SUB, SUB), event_types=(CHANGED,)).check(), "kind shop.ship"),
        (lambda: Subscription("s", (), "q", "a:b"), "subscription s: types: expected a non-empty"),
        (lambda: Subscription("s", "shop.*", "q", "a:b"), "subscription s: types"),
        (lambda: Subscription("s", ("shop.**",), "q", "a:b"), "subscription s: types"),
        (lambda: App(kinds=(MAIL, MAIL)).check(), "kind shop.mail: expected one declaration"),
        (lambda: App(event_types=(CHANGED, CHANGED)).check(), "event type shop.order.paid"),
        (lambda: App(queues=(Queue("a"), Queue("a"))).check(), "queue a: expected one"),
        (
            lambda: App(kinds=(Kind("shop.mail", "nowhere", "a:b"),)).check(),
            "kind shop.mail: queue: expected one of index, notify, webhook",
        ),
        (lambda: Periodic("P", "shop.mail", every=9), "periodic name: expected dotted"),
        (lambda: Periodic("p", "shop.mail"), "periodic p: expected one of every and cron"),
        (
            lambda: Periodic("p", "shop.mail", every=0.5),
            "periodic p: every: expected 1 s to a year",
        ),
        (lambda: Periodic("p", "shop.mail", every=float("nan")), "periodic p: every"),
        (lambda: Periodic("p", "shop.mail", cron="61 * * * *"), "periodic p: cron: expected five"),
        (
            lambda: Periodic("p", "k", cron="0 0 * * *", timezone="Mars/X"),
            "No time zone found with key Mars/X",
        ),
        (lambda: Periodic("p", "k", every=9, missed="all"), 'expected "once" or "skip"'),  # type: ignore[arg-type]
        (lambda: Periodic("p", "k", {"a": float("nan")}, every=9), "periodic p: args"),
        (lambda: Periodic(7, "k", every=9), "periodic name: expected dotted"),
        (lambda: Periodic("p", 7, every=9), "periodic p: kind: expected the name of a kind; got 7"),
        (lambda: Periodic("p", "k", every="9"), "periodic p: every: expected 1 s to a year"),
        (lambda: Periodic("p", "k", every=True), "periodic p: every: expected 1 s to a year"),
        (lambda: Periodic("p", "k", cron=5), "periodic p: cron: expected five fields"),
        (lambda: Periodic("p", "k", cron="0 0 * * *", timezone=None), "p: timezone: expected an"),
        (lambda: Periodic("p", "k", [1], every=9), "periodic p: args: expected a JSON object"),
        (lambda: Periodic("p", "k", every=9, at_first_start="no"), "at_first_start: expected True"),
        (lambda: App(periodics=("p",)), "App: periodics: expected a tuple of Periodic(…); got 'p'"),
        (lambda: App(periodics=DAILY), "App: periodics: expected a tuple of Periodic(…)"),
        (
            lambda: App(kinds=(MAIL,), periodics=(DAILY, DAILY)).check(),
            "periodic daily: expected one",
        ),
        (lambda: App(periodics=(DAILY,)).check(), "periodic daily: kind: expected a declared kind"),
        (lambda: App(subscriptions=(SUB,)).check(), "expected globs that match a declared event"),
    ],
)
def test_what_cannot_work_is_refused(build, said):
    with pytest.raises(ConfigurationError) as caught:
        build()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["a" * 70, "a" * 42, "Index", 'in"dex', "in'dex", "in.dex", "in\0dex", "in dex", "ä", "a\n"],
)
def test_a_queue_has_a_plain_name(name):
    """It is part of a program's name and of files, and its channel is made of a number alone."""
    with pytest.raises(ConfigurationError, match="queue name"):
        Queue(name)
    assert Queue("a" * 41).name == "a" * 41


def test_an_application_expands_its_routes():
    app = App(event_types=(CHANGED,), kinds=(MAIL,), subscriptions=(SUB,)).check()
    assert app.routes == [("shop.order.paid", SUB)]
    assert set(app.all_kinds) == {"shop.mail", "shop.ship"}
    assert list(app.all_queues) == [q.name for q in QUEUES]


def test_an_application_changes_a_built_in_queue():
    app = App(queues=(Queue("index", children=9), Queue("video"))).check()
    assert app.all_queues["index"].children == 9
    assert app.all_queues["video"].children == 2


def test_the_site_is_an_application_like_any_other():
    site = load_app(None)
    assert "corpus.index" in site.all_kinds
    assert ("corpus.note.changed", site.subscriptions[0]) in site.routes


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A folder of modules that can be imported, and are forgotten again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.startswith("planted"):
            del sys.modules[name]


def test_an_application_is_loaded_by_name(modules):
    (modules / "planted_shop.py").write_text(
        "from weirkeeper import App, Kind\n"
        "app = App(kinds=(Kind('shop.mail', queue='notify', handler='shop:mail'),))\n"
        "alone = App(include_site=False)\n"
    )
    assert {"shop.mail", "corpus.index"} <= set(load_app("planted_shop:app").all_kinds)
    alone = load_app("planted_shop:alone")
    assert {name.partition(".")[0] for name in alone.all_kinds} == {"weirkeeper", "webhook"}


def test_the_engine_keeps_every_application_in_order():
    names = {"prune_jobs", "prune_events", "prune_records", "discard_unknown", "verify"}
    app = load_app(None)
    assert {f"weirkeeper.{name}" for name in names} <= {p.name for p in app.periodics}
    assert {app.all_kinds[p.kind].queue for p in app.periodics} == {"maintenance"}


@pytest.mark.parametrize(
    ("text", "spec", "said"),
    [
        ("", "planted_a", "\"module:attribute\"; got 'planted_a'"),
        ("", "planted_nowhere:app", "an importable module with that attribute"),
        ("", "planted_b:app", "an importable module with that attribute"),
        ("1 / 0", "planted_c:app", "ZeroDivisionError"),
        ("raise OSError('a\\nb')", "planted_f:app", "(OSError: a b)"),
        ("import sys\nsys.exit(3)", "planted_g:app", "(SystemExit: 3)"),
        ("raise KeyboardInterrupt", "planted_h:app", "(KeyboardInterrupt)"),
        ("app = 7", "planted_d:app", "a weirkeeper.App; got 'planted_d:app = int'"),
        ("from weirkeeper import Queue\nQueue('9')", "planted_e:app", "queue name"),
    ],
)
def test_a_bad_application_is_refused(modules, text, spec, said):
    name = spec.partition(":")[0]
    if "nowhere" not in name:
        (modules / f"{name}.py").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_app(spec)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def interruptible():
    """As in a terminal: who starts tests in a shell's background has them ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("swallowed", [False, True])
def test_a_person_who_interrupts_an_import_is_obeyed(modules, swallowed):
    """Python's importer ignores what is raised in some of its callbacks."""
    name = f"planted_slow_{swallowed}"
    (modules / f"{name}.py").write_text(
        "import os, signal, time\n"
        "from contextlib import nullcontext, suppress\n"
        f"with {'suppress(KeyboardInterrupt)' if swallowed else 'nullcontext()'}:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "app = None\n"
    )
    with pytest.raises(KeyboardInterrupt):
        load_app(f"{name}:app")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit", "ZeroDivisionError"])
@pytest.mark.parametrize("what", ["handler", "hook", "outage"])
def test_whatever_an_import_raises_names_what_was_to_be_loaded(modules, what, error):
    (modules / f"planted_{what}_{error}.py").write_text(f"raise {error}('no')\n")
    named = f"planted_{what}_{error}:Name"
    load = {
        "handler": lambda: load_handler(Kind("t.ok", "t", named), wants_event=False),
        "hook": lambda: load_hooks((named,)),
        "outage": lambda: Outage((named,), delay=1).load("t.ok"),
    }
    with pytest.raises(ConfigurationError, match=f"{named}.*{error}: no") as caught:
        load[what]()
    assert "\n" not in str(caught.value)


def test_what_an_application_prints_at_its_import_spoils_no_output(modules, capsys):
    (modules / "planted_loud.py").write_text(
        "from weirkeeper import App\nprint('hello')\napp = App()\n"
    )
    load_app("planted_loud:app")
    assert capsys.readouterr() == ("", "hello\n")
