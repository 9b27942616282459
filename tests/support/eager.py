"""Floors that are learned with every claim: whatever they could miss is missed at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from shared.jobs.work import Claim
from shared.postgres.queues import claims


@contextmanager
def eager_floors() -> Iterator[None]:
    """Have each claim followed by a lesson, in all of this process."""
    original = claims.Claims.claim

    def claim(self: claims.Claims, kinds: Sequence[str], limit: int) -> list[Claim]:
        got = original(self, kinds, limit)
        self.tidy()
        return got

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(claims, "LEARN_SOON", 0.0)
        patched.setattr(claims, "LEARN_LATE", 0.0)
        patched.setattr(claims.Claims, "claim", claim)
        yield
