"""Writing one file of one slot: a mapped file of numbers by key, each update one store of 16 bytes.

Used by the series, under their lock. The layout is prometheus_client's, told in slotfile, and its
readers read what is written here; its own writer is not used, because importing it costs every
process 2 MiB for an HTTP server, a mail parser and more that comes along. Space is reserved before
it is mapped: a page without a block behind it would be SIGBUS.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from shared.telemetry.slotfile import HEAD, walk

_USED = struct.Struct("i")
_VALUES = struct.Struct("dd")


def entry_key(
    family: str, name: str, labels: Sequence[str], values: Sequence[str], help_text: str
) -> str:
    """The key of one number."""
    given = dict(zip(labels, values, strict=True))
    return json.dumps([family, name, given, help_text], sort_keys=True)


class SlotWriter:
    """A file, opened or made, that nobody else writes.

    Args:
        path: of the file; what is in it is sound.
        size: bytes to reserve at least.

    Raises:
        OSError: it cannot be had.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._places: dict[str, int] = {}
        try:
            self._size = max(size, os.fstat(self._fd).st_size)
            self._map = self._mapped(self._size)
        except BaseException:
            os.close(self._fd)
            raise
        (self._used,) = _USED.unpack_from(self._map)
        if self._used == 0:
            self._use(HEAD)
        data = self._map[: self._used]
        self._places = {key.decode(): at for key, at in walk(data, self._used)}

    def read(self, key: str) -> float:
        """A number; 0 when there was none. It has its place from now on, as far as there is any."""
        at = self._place(key)
        return 0.0 if at is None else float(_VALUES.unpack_from(self._map, at)[0])

    def write(self, key: str, value: float) -> None:
        """Replace a number; forgotten when the disk has no place for it."""
        at = self._place(key)
        if at is not None:
            # A slice is one copy; pack_into would write zeros first, which readers might see.
            self._map[at : at + _VALUES.size] = _VALUES.pack(value, 0.0)

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        if self._fd >= 0:
            self._map.close()
            os.close(self._fd)
            self._fd = -1

    def _place(self, key: str) -> int | None:
        found = self._places.get(key)
        return self._append(key) if found is None else found

    def _append(self, key: str) -> int | None:
        """A new entry, written before it counts as used."""
        text = key.encode()
        padded = text + b" " * (8 - (len(text) + _USED.size) % 8)
        entry = _USED.pack(len(text)) + padded + _VALUES.pack(0.0, 0.0)
        if self._used + len(entry) > self._size and not self._grow(self._used + len(entry)):
            return None
        self._map[self._used : self._used + len(entry)] = entry
        self._use(self._used + len(entry))
        self._places[key] = self._used - _VALUES.size
        return self._places[key]

    def _use(self, used: int) -> None:
        self._map[: _USED.size] = _USED.pack(used)
        self._used = used

    def _grow(self, least: int) -> bool:
        size = max(least, 2 * self._size)
        try:
            grown = self._mapped(size)
        except OSError:
            return False
        self._map.close()
        self._map, self._size = grown, size
        return True

    def _mapped(self, size: int) -> mmap.mmap:
        if os.fstat(self._fd).st_size < size:
            os.posix_fallocate(self._fd, 0, size)
        return mmap.mmap(self._fd, size)
