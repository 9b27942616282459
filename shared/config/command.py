"""A command that runs jobs in place of our own children: what a kind or a queue may name, as data.

Read by Kind and Queue, which check it when they are declared, and by the pool, which starts it
without a shell. What it says and hears: docs/child_protocol.md. Must never hold a secret: the
argv of a process is there for everybody to see, and is told to the database.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass

from shared.config.env import EPOCH, minimal_environment, tells_of_database
from shared.errors import ConfigurationError

LONGEST = 8 * 1024  # characters of all words together
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(=[^\x00]*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, and what it is given of our environment.

    Attributes:
        argv: the program (an absolute path, or a name to be found in PATH) and its arguments. It
            starts in /: our own folder has packages called `shared` and `metrics`, which a Python
            that starts there with -m would take for the application's.
        environment: "NAME" hands on a variable of the queue process, "NAME=value" sets one.
    """

    argv: tuple[str, ...]
    environment: tuple[str, ...] = ()

    @classmethod
    def read(cls, what: str, argv: object, environment: object) -> Command | None:
        """Check a declaration; None = it names no command.

        Args:
            what: whose it is, for messages ("kind shop.mail").
            argv: words; nothing = no command.
            environment: variables.

        Raises:
            ConfigurationError: it cannot work.
        """
        words = _texts(argv)
        if words is None or sum(map(len, words)) > LONGEST or (words and not _is_program(words[0])):
            raise ConfigurationError.of(
                f"{what}: command",
                "a list of words, the first one an absolute path or the name of a program in PATH, "
                f"of at most {LONGEST} characters",
                argv,
                'give it as ["/program", "argument"]; no shell reads it, and it starts in /',
            )
        variables = _texts(environment)
        if variables is None or not all(map(_is_variable, variables)):
            raise ConfigurationError.of(
                f"{what}: environment",
                'a list of "NAME", to hand a variable on, or "NAME=value"',
                environment,
                f"correct it; {EPOCH} is not yours to set",
            )
        if variables and not words:
            raise ConfigurationError.of(
                f"{what}: environment", "none without a command", environment, "name the command"
            )
        return cls(words, variables) if words else None

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of all variables that it is given, not their values."""
        return tuple(entry.partition("=")[0] for entry in self.environment)

    @property
    def database(self) -> bool:
        """Whether it is told of a database, and so may hold a connection."""
        return any(
            tells_of_database(name, value)
            for name, _, value in (entry.partition("=") for entry in self.environment)
        )

    def check_runs(self, what: str) -> None:
        """Refuse a command that is not there, as it would be looked for.

        Args:
            what: whose it is, for messages.

        Raises:
            ConfigurationError: no such program, or it may not be executed.
        """
        path = self.full_environment().get("PATH", os.defpath)
        if shutil.which(self.argv[0], path=path) is None:
            raise ConfigurationError.of(
                f"{what}: command",
                f"a program that may be executed, by its path or in PATH {path}",
                self.argv[0],
                "install it, or correct the path",
            )

    def check_variables(self, what: str) -> None:
        """Refuse to hand on what is not there.

        Args:
            what: whose it is, for messages.

        Raises:
            ConfigurationError: a variable is not set.
        """
        there = minimal_environment(self.names)
        for name in self.names:
            if name not in there:
                raise ConfigurationError.of(
                    f"{what}: environment",
                    "variables that are set where the queue process runs",
                    name,
                    f'set {name}, or give it a value: "{name}=…"',
                )

    def full_environment(self) -> dict[str, str]:
        """All that it is given: what no program can do without, and what is listed."""
        return minimal_environment(self.names) | self.values

    @property
    def names(self) -> tuple[str, ...]:
        """Variables of the queue process that it is given."""
        return tuple(entry for entry in self.environment if "=" not in entry)

    @property
    def values(self) -> dict[str, str]:
        """Variables that the declaration sets."""
        pairs = (entry.partition("=") for entry in self.environment if "=" in entry)
        return {name: value for name, _, value in pairs}


def _texts(given: object) -> tuple[str, ...] | None:
    """A list or tuple of texts that a program can be given; None = it is something else."""
    if not isinstance(given, tuple | list):
        return None
    words = tuple(word for word in given if isinstance(word, str) and "\x00" not in word)
    return words if len(words) == len(given) else None


def _is_program(word: str) -> bool:
    return bool(word.strip()) and (word.startswith("/") or "/" not in word)


def _is_variable(entry: str) -> bool:
    return bool(_VARIABLE.fullmatch(entry)) and entry.partition("=")[0] != EPOCH
