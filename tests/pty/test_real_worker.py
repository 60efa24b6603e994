"""The interface with its real measuring process: what stays on disk and what is gone when it ends."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from engine import store
from engine.record import RunRecord
from tests.pty.real_terminal import RealTerminal, running

OPTIONS = ("interface", "--batch-sizes", "1,2,4", "--budget", "60s", "--precision", "0.1%", "--threads", "1")


def worker_of(terminal: RealTerminal) -> psutil.Process:
    """The measuring process, once it measures."""
    there = psutil.Process(terminal.process.pid)
    terminal.until(there.children, "the measuring process")
    return there.children()[0]


def record(home: Path) -> RunRecord:
    (path,) = store.run_files(home / "state" / "batchpeak" / "runs")
    return store.record(path)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)]
)
def test_the_worker_goes_with_the_interface_and_the_points_stay(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with running(tmp_path, "real", *OPTIONS) as terminal:
        worker = worker_of(terminal)
        terminal.until(
            lambda: (
                record(tmp_path).measurements
                and any(m.blocks for m in record(tmp_path).measurements.values())
            )
        )
        terminal.process.send_signal(number)
        assert terminal.ends() == code
        terminal.until(
            lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE, "the worker's end"
        )
        assert number == signal.SIGKILL or terminal.restored()
        kept = record(tmp_path)
        assert any(known.blocks for known in kept.measurements.values())
        assert number == signal.SIGKILL or kept.finished is not None


def test_a_run_a_second_edited_run_a_race_and_quit(tmp_path: Path) -> None:
    options = ("interface", "--batch-sizes", "1,4", "--budget", "2s", "--no-confirm", "--threads", "1")
    with running(tmp_path, "real", *options) as terminal:
        terminal.shows("finished", "fashion-cnn")
        worker = psutil.Process(terminal.process.pid).children()[0].pid
        terminal.send("e")
        terminal.shows("2 sizes, 1 to 4")
        terminal.send(",8\r")
        terminal.until(lambda: "finished" in terminal.text and "3 of 3" in terminal.text, "the second run")
        assert [child.pid for child in psutil.Process(terminal.process.pid).children()] == [worker]
        terminal.send("R")
        terminal.shows("speed-up", "same answers: yes")
        terminal.send("\x1b")
        terminal.shows("r run")
        terminal.send("q")
        assert terminal.ends() == 0
        assert terminal.restored()
        kinds = [
            store.record(path).started for path in store.run_files(tmp_path / "state" / "batchpeak" / "runs")
        ]
        assert sorted(started.kind for started in kinds if started) == ["race", "sweep", "sweep"]
