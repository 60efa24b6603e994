"""The program on a terminal that only reads: what was written, and when; no screen is kept, which would take the measured core's time."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine import store
from engine.record import RunRecord
from tests.pty.real_terminal import PATIENCE_S, RealTerminal

PROGRAM = (sys.executable, "-m", "tui.cli")


class DrainedTerminal(RealTerminal):
    """A terminal that is read as fast as it is written to."""

    def __init__(
        self, command: Sequence[str], *, environ: Mapping[str, str], columns: int = 80, rows: int = 24
    ) -> None:
        self.arrivals: list[tuple[float, int]] = []
        """Each reading's time (`perf_counter`) and all bytes until then."""
        super().__init__(command, environ=environ, columns=columns, rows=rows)

    def _read(self) -> None:
        while not self._stop.is_set():
            if not select.select([self._master], [], [], 0.5)[0]:
                continue
            try:
                written = os.read(self._master, 65_536)
            except OSError:
                return
            if not written:
                return
            with self._lock:
                self.output += written
                self.arrivals.append((time.perf_counter(), len(self.output)))

    def first(self, words: bytes) -> float:
        """Wait for the words; when they were there, `perf_counter`."""
        self.until(lambda: words in self.output, repr(words))
        end = self.output.index(words) + len(words)
        return next(at for at, length in self.arrivals if length >= end)

    def leave(self) -> None:
        """End the program, and wait until its measuring process is gone as well."""
        self.process.terminate()
        self.process.wait(PATIENCE_S)


def run_file(folder: Path) -> Path | None:
    """The newest run file in the folder."""
    files = store.run_files(folder) if folder.is_dir() else []
    return files[0] if files else None


def tail(path: Path, length: int = 4096) -> bytes:
    """The end of a file: looking at it often must not cost the machine anything."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - length))
        return file.read()


def wait_for_end(folder: Path, patience_s: float) -> RunRecord:
    """The run that is being written there, once it is over."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        path = run_file(folder)
        if path is not None and b'"run-finished"' in tail(path):
            return store.record(path)
        time.sleep(0.2)
    raise TimeoutError("the run never ended")
