"""Reads commands in a thread that sleeps in read, so that a stop or the end of the stream is seen whatever the worker does."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from engine import wire

_CHUNK = 65536


class StopRequested(Exception):  # noqa: N818 - not an error: the session asked for it
    """The command in progress is to be abandoned."""


class StopFlag:
    """`up` while the command in progress is to be abandoned: one attribute, so that looking costs tens of nanoseconds."""

    __slots__ = ("up",)

    def __init__(self) -> None:
        self.up = False

    def check(self) -> None:
        """Raises StopRequested when the flag is up."""
        if self.up:
            raise StopRequested


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is no command, e.g. one of a newer session; it is answered too, because the session waits."""

    reason: str


class Inbox:
    """Commands in the order in which they came. The thread runs only when a line arrives, never on a timer.

    Every Stop is answered by exactly one Stopped: in place of the reply of the command that it interrupts, or on its own
    when it comes too late for that. `take` returns such a late Stop like a command.
    """

    def __init__(self, read: Callable[[], bytes], at_end: Callable[[], None]) -> None:
        self._read = read
        self._at_end = at_end
        self._queue: queue.SimpleQueue[tuple[int, wire.Command | Unreadable]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._received = 0
        self._last_stop = 0
        self._answered_stop = 0
        self.stop = StopFlag()

    @classmethod
    def of(cls, descriptor: int, at_end: Callable[[], None]) -> Inbox:
        """The inbox of a file descriptor."""
        return cls(lambda: os.read(descriptor, _CHUNK), at_end)

    def start(self) -> None:
        """Start the reading thread. At the end of the stream it calls `at_end`, in this thread."""
        threading.Thread(target=self.listen, name="batchpeak-commands", daemon=True).start()

    def listen(self) -> None:
        """Read until the stream ends."""
        rest = b""
        while True:
            try:
                chunk = self._read()
            except OSError:
                break
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.strip():
                    self._put(line)
        self._at_end()

    def _put(self, line: bytes) -> None:
        command: wire.Command | Unreadable
        try:
            command = wire.decode_command(line)
        except msgspec.DecodeError as error:
            command = Unreadable(str(error))
        with self._lock:
            self._received += 1
            if isinstance(command, wire.Stop):
                self._last_stop = self._received
                self.stop.up = True
            self._queue.put((self._received, command))

    def take(self) -> wire.Command | Unreadable:
        """The next command; waits for it. The stop flag is up only if a Stop came after that command."""
        while True:
            number, command = self._queue.get()
            with self._lock:
                if isinstance(command, wire.Stop):
                    if number <= self._answered_stop:
                        continue
                    self._answered_stop = number
                self.stop.up = self._last_stop > number
                return command

    def stopped(self) -> None:
        """The command in progress is being answered by Stopped: the stops that came so far are answered with it."""
        with self._lock:
            self._answered_stop = self._last_stop
            self.stop.up = False
