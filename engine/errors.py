"""Errors as values: each has a title, a message and a remedy, and knows the exit code it stands for."""

from __future__ import annotations

from typing import ClassVar

EXIT_DONE = 0
EXIT_INTERNAL = 1
EXIT_USAGE = 2
EXIT_LIMIT_MISSED = 3
EXIT_NOTHING_MEASURED = 4
EXIT_SLOWER = 5
EXIT_INTERRUPTED = 130


class BatchpeakError(Exception):
    """Something that a person can be told in a sentence, with what to do about it.

    `title` fits on one line, `message` says what happened, `remedy` says what to do ("" when there is nothing to do).
    """

    exit_code: ClassVar[int] = EXIT_INTERNAL

    def __init__(self, message: str, *, title: str, remedy: str = "") -> None:
        super().__init__(message)
        self.title = title
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.title}: {self.message}" + (f" {self.remedy}" if self.remedy else "")


class UsageError(BatchpeakError):
    """An argument that cannot be used. `argument` names it as the person typed it, e.g. "--threads"."""

    exit_code = EXIT_USAGE

    def __init__(self, message: str, *, argument: str, remedy: str = "", title: str = "") -> None:
        super().__init__(message, title=title or f"bad value for {argument}", remedy=remedy)
        self.argument = argument


class ModelError(UsageError):
    """A model that cannot be found, loaded or fed; nothing was measured."""

    def __init__(self, message: str, *, title: str = "the model cannot be loaded", remedy: str = "") -> None:
        super().__init__(message, argument="MODEL", title=title, remedy=remedy)


class DeviceError(UsageError):
    """A device that this machine does not have, or that cannot do what was asked."""

    def __init__(self, message: str, *, title: str = "the device cannot be used", remedy: str = "") -> None:
        super().__init__(message, argument="--device", title=title, remedy=remedy)


class StoreError(BatchpeakError):
    """A run file that cannot be written or read."""

    exit_code = EXIT_USAGE


class WorkerLostError(BatchpeakError):
    """The measuring process ended when it should not have; `signal` is the signal's number when one ended it."""

    exit_code = EXIT_NOTHING_MEASURED

    def __init__(
        self, message: str, *, signal: int | None = None, last_lines: tuple[str, ...] = (), remedy: str = ""
    ) -> None:
        super().__init__(message, title="the measuring process ended", remedy=remedy)
        self.signal = signal
        self.last_lines = last_lines
