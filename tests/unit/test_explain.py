"""One sentence for every place and every reason, and what the job waits for."""

from __future__ import annotations

import pytest

from shared.jobs.explain import MANY, explain

ALWAYS = {
    "kind": "mail.send", "queue": "notify", "attempt": 0, "max_attempts": 3, "state": "pending",
    "queue_paused_at": None, "kind_paused_at": None, "processes": 1, "children": 2, "busy": 2,
    "expires_at": None, "error": None, "cap": None, "rate_n": None, "rate_seconds": None,
    "rate_opens_at": None,
}  # fmt: skip
READY = {"where": "ready", "ready_at": "T0", "ahead": 0}
LATER = {"where": "scheduled", "run_at": "T9", "why": "delay", "due": False}
PARKED = {"where": "parked", "key": "k", "max_n": 1, "holders": 1, "holder": "5", "open_at": None,
          "closed": None}  # fmt: skip
RUNNING = {
    "where": "running", "state": "running", "slot": "notify", "host": "h", "pid": 7,
    "owner": "alive", "claimed_at": "T1", "started_at": "T2", "deadline": "T8",
    "cancel_requested_at": None,
}  # fmt: skip
ENDED = {"where": "ended", "ended_at": "T5", "started_at": "T2", "outcome": "failed", "attempt": 3}
NOBODY = {"processes": 0, "children": 0, "busy": 0}

CASES = [
    # ready
    (
        {**READY, "ahead": 3},
        ("It has been in line on queue notify since T0: 3 jobs are before it, and 2 of 2 children "
        "are busy."),
        "a child", None,
    ),
    (
        {**READY, "ahead": 1},
        ("It has been in line on queue notify since T0: 1 job is before it, and 2 of 2 children "
        "are busy."),
        "a child", None,
    ),
    (
        {**READY, "ahead": MANY},
        ("It has been in line on queue notify since T0: 1000 or more jobs are before it, and 2 of "
        "2 children are busy."),
        "a child", None,
    ),
    (
        {**READY, "busy": 1},
        "It has been in line on queue notify since T0; it is next, and a child is free for it.",
        "a child", None,
    ),
    (
        {**READY, **NOBODY},
        "It waits for a process: none of queue notify that knows kind mail.send is running.",
        "a process", None,
    ),
    (
        {**READY, "queue_paused_at": "T4"},
        ("It waits because queue notify has been paused since T4; "
        "`weirkeeper resume --queue notify` lets it run."),
        "resume", None,
    ),
    (
        {**READY, "kind_paused_at": "T4", **NOBODY},
        ("It waits because kind mail.send has been paused since T4; "
        "`weirkeeper resume --kind mail.send` lets it run."),
        "resume", None,
    ),
    (
        {**READY, "queue_paused_at": "T4", "kind_paused_at": "T5"},
        ("It waits because queue notify has been paused since T4 and kind mail.send has been paused "
        "since T5; `weirkeeper resume --queue notify` and `weirkeeper resume --kind mail.send` let it "
        "run."),
        "resume", None,
    ),
    (
        {**READY, "queue_paused_at": "T4", "kind_paused_at": "T5", "quarantine": "5 deaths"},
        ("It waits because queue notify has been paused since T4 and kind mail.send has been "
        "quarantined since T5 (5 deaths); `weirkeeper resume --queue notify` and "
        "`weirkeeper resume --kind mail.send` let it run."),
        "resume", None,
    ),
    (
        {**READY, "ahead": 3, "fair": True},
        ("It has been in line on queue notify since T0: 3 jobs are before it, not counting other "
        "owners of kind mail.send, who take turns, and 2 of 2 children are busy."),
        "a child", None,
    ),
    (
        {**READY, "busy": 1, "fair": True},
        ("It has been in line on queue notify since T0: 0 jobs are before it, not counting other "
        "owners of kind mail.send, who take turns, and 1 of 2 children are busy."),
        "a child", None,
    ),
    # its kind was moved to another queue
    (
        {**READY, "ready_at": "T0", "lies_in": "mail"},
        ("It lies in queue mail, where kind mail.send was declared before: a process of queue notify "
        "brings it over within seconds."),
        "its queue", None,
    ),
    (
        {**READY, "lies_in": "mail", **NOBODY},
        "It waits for a process: none of queue notify that knows kind mail.send is running.",
        "a process", None,
    ),
    # to be started by a moment
    (
        {**READY, "busy": 1, "expires_at": "T6", "expired": False},
        ("It has been in line on queue notify since T0; it is next, and a child is free for it. If it "
        "has not started by T6, it is discarded."),
        "a child", None,
    ),
    (
        {**LATER, "expires_at": "T6", "expired": False},
        "It was enqueued for later: it runs at T9. If it has not started by T6, it is discarded.",
        "time", "T9",
    ),
    (
        {**PARKED, "expires_at": "T6", "expired": True},
        ("It expired at T6, before it was tried: a process of queue notify discards it at its next "
        "look."),
        "its end", None,
    ),
    (
        {**READY, **NOBODY, "expires_at": "T6", "expired": True},
        ("It expired at T6, before it was tried: a process of queue notify discards it at its next "
        "look; none that knows its kind is running."),
        "its end", None,
    ),
    # scheduled
    (LATER, "It was enqueued for later: it runs at T9.", "time", "T9"),
    (
        {**LATER, "due": True},
        "It was enqueued for later: it has been due since T9.",
        "time", "T9",
    ),
    (
        {**LATER, "why": "retry", "attempt": 1, "state": "retryable", "error": "ValueError: no"},
        "Attempt 1 of 3 failed (ValueError: no): the next runs at T9.",
        "retry", "T9",
    ),
    (
        {**LATER, "why": "snooze"},
        "Its handler asked for another run later, which spends no attempt: it runs at T9.",
        "snooze", "T9",
    ),
    (
        {**LATER, "queue_paused_at": "T4"},
        ("It was enqueued for later: it runs at T9. Even then: it waits because queue notify has "
        "been paused since T4; `weirkeeper resume --queue notify` lets it run."),
        "time", "T9",
    ),
    (
        {**READY, "cap": 2},
        ("It has been in line on queue notify since T0: 2 jobs of the queue may run at once, "
        "and do."), "cap", None,
    ),
    (
        {**READY, "cap": 2, "rate_n": 9, "rate_seconds": 60.0, "rate_opens_at": "T5"},
        ("It has been in line on queue notify since T0: 9 jobs of kind mail.send may start within 60 s, "
        "and have; the next may at T5."), "rate", "T5",
    ),
    (
        {**READY, "cap": 2, "queue_paused_at": "T4"},
        ("It waits because queue notify has been paused since T4; `weirkeeper resume --queue notify` "
        "lets it run."), "resume", None,
    ),
    # parked
    (
        PARKED,
        "It waits for its concurrency key k, held by job 5 (1 of at most 1).", "key", None,
    ),
    (
        {**PARKED, "holder": None, "holders": 0},
        "It waits for its concurrency key k, which nobody holds (0 of at most 1).", "key", None,
    ),
    (
        {**PARKED, "closed": True},
        "It waits for its concurrency key k, closed until it is enabled.", "key", None,
    ),
    (
        {**PARKED, "open_at": "T7"},
        "It waits for its concurrency key k, closed until T7.", "key", "T7",
    ),
    (
        {**PARKED, **NOBODY},
        ("It waits for its concurrency key k, held by job 5 (1 of at most 1). Even then: it waits for a process: none of queue notify that knows kind mail.send is running."),
        "key", None,
    ),
    # running
    (
        RUNNING,
        ("It has been running since T2 on process notify (pid 7 on h), attempt 1 of 3, until T8 at "
        "most."),
        "its end", "T8",
    ),
    (
        {**RUNNING, "owner": "draining"},
        ("It has been running since T2 on process notify (pid 7 on h), which is draining, attempt "
        "1 of 3, until T8 at most."),
        "its end", "T8",
    ),
    (
        {**RUNNING, "started_at": None, "deadline": None},
        ("It was claimed at T1 by process notify (pid 7 on h); a child begins it as soon as one is "
        "free."),
        "a child", None,
    ),
    (
        {**RUNNING, "cancel_requested_at": "T3"},
        "Its end was asked for at T3: process notify (pid 7 on h) is stopping it.",
        "its end", None,
    ),
    (
        {**RUNNING, "owner": "lost", "cancel_requested_at": "T3"},
        ("It runs nowhere: process notify (pid 7 on h) is gone, and another process takes the job "
        "back within seconds."),
        "rescue", None,
    ),
    (
        {**RUNNING, "owner": "lost", "slot": None, "pid": None, "host": None},
        ("It runs nowhere: the process that claimed it is gone, and another process takes the job "
        "back within seconds."),
        "rescue", None,
    ),
    # ended
    (
        {**ENDED, "state": "completed", "outcome": "completed", "attempt": 1},
        "It completed at T5, on attempt 1 of 3.", None, None,
    ),
    (
        {**ENDED, "state": "discarded", "outcome": "discarded", "error": "not wanted"},
        "It was discarded at T5 and is not tried again: not wanted.", None, None,
    ),
    (
        {**ENDED, "state": "discarded", "error": "ValueError: no"},
        "It was discarded at T5: the last of 3 attempts failed: ValueError: no.", None, None,
    ),
    (
        {**ENDED, "state": "discarded", "outcome": "timeout"},
        "It was discarded at T5: the last of 3 attempts ran into its timeout.", None, None,
    ),
    (
        {**ENDED, "state": "discarded", "outcome": "crashed"},
        "It was discarded at T5: the last of 3 attempts ended with its child.", None, None,
    ),
    (
        {**ENDED, "state": "discarded", "outcome": "rescued"},
        "It was discarded at T5: the last of 3 attempts was lost with its process.", None, None,
    ),
    (
        {**ENDED, "state": "cancelled", "outcome": "cancelled"},
        "It was cancelled by hand at T5, while it ran.", None, None,
    ),
    (
        {**ENDED, "state": "cancelled", "outcome": "cancelled", "started_at": None, "attempt": 0},
        "It was cancelled by hand at T5, before it began.", None, None,
    ),
    (
        {**ENDED, "state": "cancelled", "outcome": "cancelled", "started_at": None, "attempt": 2},
        "It was cancelled by hand at T5, while it waited, after 2 of 3 attempts.", None, None,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "sentence", "waits_for", "until"), CASES)
def test_each_place_and_reason_has_its_sentence(facts, sentence, waits_for, until):
    found = explain({**ALWAYS, **facts})
    assert found.sentence == sentence
    assert (found.waits_for, found.until) == (waits_for, until)
    assert (found.where, found.state) == (facts["where"], found.facts["state"])
    assert None not in found.facts.values()
