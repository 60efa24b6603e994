"""The headless table on a real terminal device, with a scripted session in the real program."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine import store

ROOT = Path(__file__).resolve().parents[2]
SHOWN, HIDDEN = b"\x1b[?25h", b"\x1b[?25l"
PROGRAM = """
import sys, time
from tests.unit import cli_runs as runs
from tui.headless import Surroundings
from tui.cli import main
import os

def deaf(plan, session):
    yield runs.started(plan)
    yield runs.ready()
    yield runs.stable(1, 200.0)
    while True:
        signal_came = session.cancelled
        time.sleep(0.05)
        if signal_came:
            os.write(2, b"told")

def obeying(plan, session):
    yield runs.started(plan)
    yield runs.ready()
    yield runs.stable(1, 200.0)
    os.write(2, b"measured")
    while not session.cancelled:
        time.sleep(0.05)
    yield runs.finished("cancelled")

script = {"whole": runs.sweep, "deaf": deaf, "obeying": obeying}[sys.argv[1]]
around = Surroundings(sys.stdout, sys.stderr, os.environ, lambda: runs.ScriptedSession(script))
sys.exit(main(["sweep", "--save-dir", sys.argv[2]], around=around))
"""


@dataclass
class Terminal:
    """A pseudo-terminal with the program on it."""

    process: subprocess.Popen[bytes]
    master: int
    before: list[Any]
    seen: bytearray = field(default_factory=bytearray)

    def read_until(self, wanted: bytes) -> bytes:
        while wanted not in self.seen:
            chunk = self._read()
            assert chunk, f"it ended without {wanted!r}: {bytes(self.seen)!r}"
            self.seen.extend(chunk)
        return bytes(self.seen)

    def read_to_end(self) -> bytes:
        while chunk := self._read():
            self.seen.extend(chunk)
        self.process.wait(60)
        return bytes(self.seen)

    def hang_up(self) -> None:
        """Close the terminal's end, as a dropped line does."""
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def _read(self) -> bytes:
        try:
            return os.read(self.master, 65536)
        except OSError:  # Linux's way to say that nobody holds the other end any more
            return b""


@pytest.fixture
def on_terminal(tmp_path: Path) -> Iterator[Any]:
    made: list[Terminal] = []

    def start(script: str) -> Terminal:
        master, slave = pty.openpty()
        before = termios.tcgetattr(slave)
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, script, str(tmp_path / "runs")],
            cwd=ROOT,
            env=environ,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        made.append(Terminal(process, master, before))
        return made[-1]

    yield start
    for terminal in made:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.process.wait()
        terminal.hang_up()


def test_the_table_is_drawn_in_place_and_the_cursor_comes_back(on_terminal: Any) -> None:
    terminal = on_terminal("whole")
    seen = terminal.read_to_end()
    assert terminal.process.returncode == 0
    assert HIDDEN in seen
    final = seen.rpartition(SHOWN)[2].decode()
    assert "6,400" in final
    assert "Deploy 32: the peak." in final
    assert b"\x1b[?1049h" not in seen, "the shell's history stays on the screen"
    assert termios.tcgetattr(terminal.master) == terminal.before


def test_a_second_ctrl_c_leaves_a_session_that_hears_nothing_and_gives_the_cursor_back(
    on_terminal: Any,
) -> None:
    terminal = on_terminal("deaf")
    terminal.read_until(HIDDEN)
    terminal.read_until(b"waiting")
    terminal.process.send_signal(signal.SIGINT)
    terminal.read_until(b"told")
    terminal.process.send_signal(signal.SIGINT)
    seen = terminal.read_to_end()
    assert terminal.process.returncode == 130
    assert seen.rindex(SHOWN) > seen.rindex(HIDDEN)
    assert termios.tcgetattr(terminal.master) == terminal.before


def test_a_dropped_line_ends_the_run_in_order_and_keeps_it(on_terminal: Any, tmp_path: Path) -> None:
    terminal = on_terminal("obeying")
    terminal.read_until(b"measured")
    terminal.hang_up()
    assert terminal.process.wait(60) == 129
    record = store.record(store.find("last", tmp_path / "runs"))
    assert record.points[1].state == "stable"
    assert record.finished is not None
    assert record.finished.reason == "cancelled"
