"""Interrupts of a headless run: the first one cancels, a second ctrl+c leaves at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

HANDLED = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Interrupts:
    """While it is entered, signals cancel the run. Signals that were ignored at the start (nohup, a job in the background)
    stay ignored.
    """

    def __init__(self, *, leave: Callable[[int], None] = os._exit) -> None:
        self.received: int | None = None
        """Number of the first signal that came."""
        self._leave = leave
        self._cancel: Callable[[], None] = lambda: None
        self._abandon: Callable[[], None] = lambda: None
        self._before: dict[int, Any] = {}

    def on_first(self, cancel: Callable[[], None]) -> None:
        """What the first signal does; done now when it has come already."""
        self._cancel = cancel
        if self.received is not None:
            cancel()

    def on_leaving(self, abandon: Callable[[], None]) -> None:
        """What gives the terminal back before a second ctrl+c leaves."""
        self._abandon = abandon

    @property
    def exit_code(self) -> int | None:
        """128 + the signal's number, as shells report it; None when none came."""
        return None if self.received is None else 128 + self.received

    def __enter__(self) -> Self:
        # Python lets only the main thread set handlers; elsewhere the caller keeps its own.
        if threading.current_thread() is threading.main_thread():
            for number in HANDLED:
                before = signal.getsignal(number)
                if before is not signal.SIG_IGN:
                    self._before[number] = before
                    signal.signal(number, self.handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)
        self._before.clear()

    def handle(self, number: int, frame: FrameType | None = None) -> None:  # noqa: ARG002
        """The signal handler. A hang-up comes twice when a terminal closes, so only a second ctrl+c leaves at once."""
        if self.received is None:
            self.received = number
            self._cancel()
        elif number == signal.SIGINT:
            self._abandon()
            self._leave(128 + number)
