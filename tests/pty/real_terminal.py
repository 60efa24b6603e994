"""A terminal for tests: a pseudo-terminal whose other side is read into a screen (pyte), byte for byte as a person's would be."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyte

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
"""How long a test waits for something to be on the screen before it fails."""
COLOUR = re.compile(rb"\x1b\[([0-9;]*)m")


class RealTerminal:
    """A program on a pseudo-terminal."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        columns: int = 80,
        rows: int = 24,
        bytes_per_s: int | None = None,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._lock = threading.Lock()
        self.output = bytearray()
        self._bytes_per_s = bytes_per_s
        self._master, slave = pty.openpty()
        self._slave = slave
        self._set_size(columns, rows)
        self.attributes_before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=dict(environ),
            cwd=environ.get("PWD", str(ROOT)),
            start_new_session=True,
            # The terminal becomes the session's own: a dropped line is then told by SIGHUP, as it is to a person's shell.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self._stop = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        chunk = 4096 if self._bytes_per_s is None else max(64, self._bytes_per_s // 20)
        while not self._stop.is_set():
            if not select.select([self._master], [], [], 0.05)[0]:
                continue
            try:
                data = os.read(self._master, chunk)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                self.output += data
                self._stream.feed(data)
            if self._bytes_per_s is not None:
                time.sleep(len(data) / self._bytes_per_s)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        with self._lock:
            self.screen.resize(rows, columns)
        self._set_size(columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def send(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    @property
    def text(self) -> str:
        """The screen's lines."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self.screen.display)

    def colours_of(self, characters: str) -> set[str]:
        """Foreground colours of the cells that hold one of the characters."""
        with self._lock:
            cells = [cell for row in self.screen.buffer.values() for cell in row.values()]
            return {cell.fg for cell in cells if cell.data in characters}

    def pairs(self) -> set[tuple[str, str]]:
        """Foreground and background of every cell that shows something."""
        with self._lock:
            cells = [cell for row in self.screen.buffer.values() for cell in row.values()]
            return {(cell.fg, cell.bg) for cell in cells if cell.data.strip() and not cell.reverse}

    def until(self, true: Callable[[], object], what: str = "") -> None:
        """Wait for a condition; fails with the screen when it does not come."""
        end = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < end, f"never: {what}; the screen:\n{self.text}"
            time.sleep(0.01)

    def shows(self, *texts: str) -> None:
        for text in texts:
            self.until(lambda text=text: text in self.text, repr(text))  # type: ignore[misc]

    def quiet_for(self, seconds: float) -> int:
        """Bytes that the program wrote in that time."""
        before = len(self.output)
        time.sleep(seconds)
        return len(self.output) - before

    def ends(self) -> int:
        """Wait for the program's end; its exit code (negative: the signal that ended it)."""
        code = self.process.wait(PATIENCE_S)
        self.until(lambda: not self._unread(), "the last output read")
        return code

    def _unread(self) -> int:
        count = struct.unpack("i", fcntl.ioctl(self._master, termios.FIONREAD, b"\0" * 4))[0]
        return int(count)

    def restored(self) -> bool:
        """Whether the terminal is as it was: its settings, the ordinary screen, the mouse off, the cursor shown."""
        output = bytes(self.output)
        screens = (output.rfind(b"\x1b[?1049l"), output.rfind(b"\x1b[?1049h"))
        mouse = (output.rfind(b"\x1b[?1000l"), output.rfind(b"\x1b[?1000h"))
        cursor = (output.rfind(b"\x1b[?25h"), output.rfind(b"\x1b[?25l"))
        same = termios.tcgetattr(self._slave) == self.attributes_before
        return same and all(off >= on for off, on in (screens, mouse, cursor))

    def hang_up(self) -> None:
        """The line drops: the other side of the terminal is gone."""
        self._close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._close()

    def _close(self) -> None:
        # The reader first: a number that it still reads from may be given to the next terminal.
        self._stop.set()
        self._reader.join()
        for number in (self._slave, self._master):
            with contextlib.suppress(OSError):
                os.close(number)
        self._slave = self._master = -1


def environment(home: Path, **changes: str | None) -> dict[str, str]:
    """A plain environment: a 256-colour terminal, UTF-8, everything under `home`."""
    environ: dict[str, str | None] = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "PYTHONPATH": str(ROOT),
        "PWD": str(home),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        **changes,
    }
    return {name: value for name, value in environ.items() if value is not None}


@contextmanager
def running(
    home: Path,
    script: str,
    *options: str,
    columns: int = 80,
    rows: int = 24,
    bytes_per_s: int | None = None,
    **changes: str | None,
) -> Iterator[RealTerminal]:
    """The interface on a terminal: with a scripted session, or with the real one (`script` = "real")."""
    program = (
        ["-c", "import sys; from tui.cli import main; sys.exit(main())"]
        if script == "real"
        else ["-m", "tests.pty.scripted_app", script]
    )
    terminal = RealTerminal(
        [sys.executable, *program, *options],
        environ=environment(home, **changes),
        columns=columns,
        rows=rows,
        bytes_per_s=bytes_per_s,
    )
    try:
        yield terminal
    finally:
        terminal.close()
