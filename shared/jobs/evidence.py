"""How a bad end is told in few words: what is known of a child's death, or of a run that failed.

Made by the pool, kept with the attempt; read by `jobs get`, `jobs explain` and the panel. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def brief(evidence: Mapping[str, Any] | None) -> str | None:
    """One line without the stacks: "signal SIGSEGV, 81 MiB of memory, 1.2 s of CPU time".

    Args:
        evidence: of an attempt.

    Returns:
        None when there is nothing to tell.
    """
    known = evidence or {}
    parts = []
    if "signal" in known:
        parts.append(f"signal {known['signal']}")
    if "exit_code" in known:
        parts.append(f"exit code {known['exit_code']}")
    if known.get("out_of_memory"):
        parts.append("out of memory")
    if "max_rss_mib" in known:
        parts.append(f"{known['max_rss_mib']:g} MiB of memory at most")
    if "cpu_seconds" in known:
        parts.append(f"{known['cpu_seconds']:g} s of CPU time")
    progress = known.get("progress")
    if progress:
        of = "" if progress["of"] is None else f" of {progress['of']:g}"
        parts.append(f"{progress['n']:g}{of} done")
    return ", ".join(parts) or None
