"""The terminal's driver: Textual's, which writes only what changes on the terminal."""

from __future__ import annotations

from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from tui.lean_output import LeanOutput


class LeanDriver(LinuxDriver):
    """Everything that is drawn goes out as the difference to what the terminal shows."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._output = LeanOutput()
        super().__init__(*args, **options)

    def write(self, data: str) -> None:
        """Write for the app's thread, as all that draws."""
        super().write(self._output.lean(data))

    def forget(self) -> None:
        """The terminal may show anything: the next frame is written whole."""
        self._output.forget()
