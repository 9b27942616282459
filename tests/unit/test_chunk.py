"""What a child holds: jobs end from the front, and are cut off from the back."""

from __future__ import annotations

from typing import NamedTuple

from workers.pool.chunk import Chunk


class Job(NamedTuple):
    job_id: int
    line: bytes = b"{}"
    timeout: float = 1.0


def ids(jobs) -> list[int]:
    return [job.job_id for job in jobs]


def chunk(first: int = 1) -> Chunk:
    return Chunk([Job(n) for n in (11, 12, 13, 14)], first, now=5.0)


def test_jobs_end_once_from_the_front():
    held = chunk()
    assert ids(held.end(2, 5.5)) == [11, 12]
    assert held.since == 5.5
    assert held.end(2, 5.7) == []
    assert held.since == 5.5
    assert ids(held.end(4, 6.0)) == [13, 14]
    assert len(held) == 0


def test_only_what_has_not_ended_can_be_cut_off():
    held = chunk()
    held.end(1, 5.5)
    assert ids(held.cut(2)) == [13, 14]
    assert ids(held.cut(9)) == [12]
    assert len(held) == 0


def test_what_it_holds_is_what_has_neither_ended_nor_been_cut_off():
    held = chunk()
    held.end(1, 5.5)
    held.cut(1)
    assert [held.holds(n) for n in (11, 12, 13, 14)] == [False, True, True, False]
    assert [held.job(n) is not None for n in range(5)] == [False, True, True, False, False]


def test_the_last_word_is_that_of_the_last_job_that_was_handed_over():
    held = chunk()
    held.cut(2)
    assert [held.is_last(n) for n in range(4)] == [False, False, False, True]


def test_a_word_is_placed_and_one_of_an_earlier_chunk_is_before_all():
    held = chunk(first=7)
    assert [held.place(n) for n in (7, 8, 10, 11)] == [0, 1, 3, 4]
    assert held.place(6) is None
    assert held.place(12) is None


def test_numbers_wrap():
    held = chunk(first=2**16 - 2)
    assert [held.place(n) for n in (2**16 - 2, 2**16 - 1, 0, 1, 2)] == [0, 1, 2, 3, 4]
    assert held.place(2**16 - 3) is None
