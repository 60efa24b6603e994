"""Signals of the process, heard on the event loop: a new size, ctrl+c from outside, the end."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Callable

from textual.app import App
from textual.events import Resize
from textual.geometry import Size

EXIT_CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129}


def listen(app: App[int], *, interrupt: Callable[[], object], end: Callable[[int], object]) -> None:
    """Call `interrupt` at SIGINT and `end` with the exit code at SIGTERM and SIGHUP; tell the app its new sizes.

    To be called again after the process was suspended: the driver then takes the size's signal back.
    """
    loop = asyncio.get_running_loop()
    for number, code in EXIT_CODES.items():
        loop.add_signal_handler(number, end, code)
    loop.add_signal_handler(signal.SIGINT, app.call_later, interrupt)
    if not app.is_headless:
        # The driver's own handler runs inside whatever the signal interrupts, and quick resizes get lost in it.
        loop.add_signal_handler(signal.SIGWINCH, _resized, app)


def _resized(app: App[int]) -> None:
    size = Size(*shutil.get_terminal_size())
    app.post_message(Resize(size, size))
