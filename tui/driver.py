"""The terminal's driver: Textual's, which writes only what changes on the terminal."""

from __future__ import annotations

import threading
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from tui.lean_output import LeanOutput


class LeanDriver(LinuxDriver):
    """Everything that is drawn goes out as the difference to what the terminal shows."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._output = LeanOutput()
        self._writing = threading.RLock()
        super().__init__(*args, **options)

    def write(self, data: str) -> None:
        """Write what is new in it. The app's thread draws; the thread that reads the terminal answers some of its reports."""
        with self._writing:
            super().write(self._output.lean(data))

    def forget(self, columns: int, rows: int) -> None:
        """The terminal may show anything, and has this size: the next frame is written whole."""
        with self._writing:
            self._output.forget(columns, rows)
