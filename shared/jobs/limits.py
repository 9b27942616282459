"""What a run of a job may use of the machine, as data: declared by a kind, kept where it runs.

The child bounds memory and open files before the handler begins; its parent watches memory and CPU
time from outside, so that a handler stuck in C is ended as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.errors import ConfigurationError

LEAST_MEMORY = 16  # MiB; below it a handler could hardly begin
LEAST_FILES = 32


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run; None = those of the child.

    Attributes:
        memory_mib: by how much the child may grow, at least 16. Beyond it the handler gets a
            MemoryError; a child that grows all the same is killed.
        cpu_seconds: CPU time of the run, above 0. Beyond it the job is stopped as at its timeout.
        open_files: highest file descriptor, at least 32.
    """

    memory_mib: int | None = None
    cpu_seconds: float | None = None
    open_files: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _check("memory_mib", self.memory_mib, int, LEAST_MEMORY)
        _check("open_files", self.open_files, int, LEAST_FILES)
        if self.cpu_seconds is not None and not (
            type(self.cpu_seconds) in (int, float) and 0 < self.cpu_seconds < float("inf")
        ):
            raise ConfigurationError.of(
                "limits: cpu_seconds", "more than 0 s", self.cpu_seconds, "correct it"
            )


def _check(name: str, given: object, wanted: type, least: int) -> None:
    if given is not None and not (type(given) is wanted and given >= least):  # type: ignore[operator]
        raise ConfigurationError.of(
            f"limits: {name}", f"a whole number of at least {least}", given, "correct it"
        )
