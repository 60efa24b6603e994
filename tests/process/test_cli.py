"""The real command with a real worker: pipes, signals, kills, resuming, and refusals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine import store
from engine.plan import Plan
from tests.unit import cli_runs

ROOT = Path(__file__).resolve().parents[2]
MODEL = '''
import itertools, os, time
import torch

class Tiny(torch.nn.Module):
    """Steady up to 4 images a call; above that, while the file "slow" is there, calls that keep a size from settling."""

    def __init__(self):
        super().__init__()
        self.turn = itertools.count()
        self.slow = os.path.exists("slow")

    def forward(self, images):
        slow = self.slow and len(images) > 4
        time.sleep(0.02 + 0.3 * (next(self.turn) % 2) if slow else 0.002)
        return images + 1
'''
SETTLED = ("stable", "noisy", "short")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "tiny.py").write_text(MODEL)
    (tmp_path / "slow").touch()
    return tmp_path


class Command:
    """The program, started as a person starts it; every wait has an end."""

    def __init__(self, place: Path, *arguments: str, **more: Any) -> None:
        options: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "cwd": place,
        }
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": str(place / "state"),
            "TERM": "xterm",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tui.cli", *arguments], env=environ, **{**options, **more}
        )
        self.runs = place / "state" / "batchpeak" / "runs"
        self.lines: list[str] = []

    def rows(self) -> Iterator[str]:
        """The lines of settled sizes as they come."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if line.split()[:1] and line.split()[0].isdigit() and line.split()[-1] in SETTLED:
                yield line.split()[0]

    def wait_for_rows(self, count: int) -> list[int]:
        found = []
        for row in self.rows():
            found.append(int(row))
            if len(found) == count:
                return found
        pytest.fail(f"it ended early: {''.join(self.lines)}{self.error()}")

    def children(self) -> list[psutil.Process]:
        found = psutil.Process(self.process.pid).children(recursive=True)
        assert found, "the model runs in a process of its own"
        return found

    def error(self) -> str:
        assert self.process.stderr is not None
        return str(self.process.stderr.read())

    def end(self) -> tuple[int, str, str]:
        """Exit code, the rest of the output, and the error stream."""
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, "".join(self.lines) + (out or ""), err or ""

    def record(self) -> Any:
        return store.record(store.find("last", self.runs))


def settled(record: Any) -> list[int]:
    return sorted(size for size, point in record.points.items() if point.state in SETTLED)


@pytest.fixture
def started(place: Path) -> Iterator[list[Command]]:
    """Commands that are ended with the test, whatever happens in it."""
    commands: list[Command] = []
    yield commands
    for command in commands:
        if command.process.poll() is None:
            command.process.kill()
        command.process.communicate()


SWEEP = ("sweep", "tiny.py:Tiny", "--input", "4", "--no-confirm", "--threads", "1", "--precision", "50%")
LONG = (*SWEEP, "-b", "1,2,4,8,16", "--size-budget", "2m", "--budget", "5m")


def test_a_sweep_of_a_file_through_a_pipe(place: Path) -> None:
    code, out, err = Command(place, *SWEEP, "-b", "1,4").end()
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    command = Command(place, "show", "last", "--plain")
    code, shown, _ = command.end()
    assert code == 0
    assert "Batch size 4: " in shown
    record = command.record()
    assert settled(record) == [1, 4]
    assert record.finished.reason == "completed"
    assert record.started.host["usable_cores"] >= 1


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_run_in_order_and_the_worker_with_it(
    place: Path, started: list[Command], number: int, code: int
) -> None:
    command = Command(place, *LONG)
    started.append(command)
    first = command.wait_for_rows(3)
    workers = command.children()
    command.process.send_signal(number)
    found, out, err = command.end()
    assert (found, err) == (code, "")
    assert "what was measured is kept" in out
    assert psutil.wait_procs(workers, timeout=5)[1] == []
    record = command.record()
    assert record.finished.reason == "cancelled"
    assert set(settled(record)) >= set(first)


def test_after_a_kill_three_rows_are_on_disk_no_worker_runs_and_resume_measures_the_rest(
    place: Path, started: list[Command]
) -> None:
    command = Command(place, *LONG)
    started.append(command)
    first = command.wait_for_rows(3)
    workers = command.children()
    command.process.kill()
    command.end()
    assert psutil.wait_procs(workers, timeout=5)[1] == []
    killed = command.record()
    assert killed.finished is None
    assert set(settled(killed)) >= set(first)
    (place / "slow").unlink()
    code, _, _ = Command(place, "resume", "last", "--json").end()
    assert code == 0
    resumed = command.record()
    assert resumed.started.resumes == killed.id
    assert settled(resumed) == [1, 2, 4, 8, 16]
    taken = {size for size, point in resumed.points.items() if point.kept_from == killed.id}
    assert taken >= set(first)


def test_a_reader_that_leaves_ends_the_run_quietly(place: Path, started: list[Command]) -> None:
    command = Command(place, *LONG)
    started.append(command)
    assert command.process.stdout is not None
    command.process.stdout.readline()
    command.process.stdout.close()
    command.process.stdout = None
    code, _, err = command.end()
    assert (code, err) == (141, "")


@pytest.mark.parametrize("arguments", [("sweep", "-b", "1,4,8"), ("peak", "--max", "8")])
def test_a_model_whose_every_output_is_nan_recommends_nothing_and_says_so(
    place: Path, arguments: tuple[str, ...]
) -> None:
    (place / "broken.py").write_text(
        "import torch\n\n"
        "class Broken(torch.nn.Module):\n"
        "    def forward(self, images):\n"
        "        return images * float('nan')\n"
    )
    name, *which = arguments
    command = Command(
        place, name, "broken.py:Broken", *SWEEP[2:], *which, "--budget", "5s", "--size-budget", "1s"
    )
    code, out, err = command.end()
    assert (code, err) == (4, "")
    assert "Nothing to recommend" in out
    assert "NaN" in out
    assert "Deploy" not in out
    record = command.record()
    assert record.finished.reason == "completed"
    assert (record.verdict.peak, record.verdict.recommended) == (None, None)
    # What was measured is kept, and its rows say what is wrong with it.
    assert {1, 4, 8} <= set(settled(record))
    for point in record.points.values():
        assert "not-finite" in [warned.kind for warned in point.warnings]


def test_nohup_keeps_the_run_through_a_hang_up(place: Path, started: list[Command]) -> None:
    command = Command(
        place, *SWEEP, "-b", "1,4", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    started.append(command)
    command.wait_for_rows(1)
    command.process.send_signal(signal.SIGHUP)
    assert command.end()[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sweep", "no_such_model"), "no_such_model"),
        (("sweep", "missing.py:Net"), "missing.py"),
        (("sweep", "tiny.py:Nothing", "--input", "4"), "Nothing"),
        (("sweep", "broken.pt"), "broken.pt"),
        (("sweep", "tiny.py:Tiny"), "--input"),
        (("race", "tiny.py:Tiny", "--input", "4", "--device", "xpu:7"), "--device"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_exit_2(
    place: Path, arguments: tuple[str, ...], says: str
) -> None:
    (place / "broken.pt").write_bytes(b"PK\x03\x04 not an archive")
    code, out, err = Command(place, *arguments).end()
    assert code == 2
    assert err.startswith("batchpeak: ")
    assert says in err
    assert "Traceback" not in err + out


def test_env_tells_the_machine_and_its_devices(place: Path) -> None:
    code, out, err = Command(place, "env").end()
    assert (code, err) == (0, "")
    assert "usable cores" in out
    assert any(line.split()[:2] == ["device", "cpu"] for line in out.splitlines())


@pytest.mark.parametrize(
    "arguments", [("runs",), ("models",), ("sweep", "--help"), ("show", "last", "--json")]
)
def test_a_reader_that_is_gone_already_is_no_error_to_talk_of(
    place: Path, arguments: tuple[str, ...]
) -> None:
    with store.create(Plan(), "a1", "2026-03-01T10:00:00Z", place / "state" / "batchpeak" / "runs") as writer:
        for event in cli_runs.sweep(Plan(), cli_runs.ScriptedSession(cli_runs.sweep)):
            writer.write(event)
    reader, pipe = os.pipe()
    os.close(reader)
    command = Command(place, *arguments, stdout=pipe)
    os.close(pipe)
    code, _, err = command.end()
    assert (code, err) == (141, "")


def test_a_full_disk_behind_the_output_is_told_in_a_line(place: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("the system has no device that is always full")
    with Path("/dev/full").open("w") as full:
        code, _, err = Command(place, "models", stdout=full).end()
    assert code == 1
    assert err == "batchpeak: the output could not be written: No space left on device.\n"


def test_a_closed_output_is_no_error(place: Path) -> None:
    code, _, err = Command(place, "models", stdout=None, preexec_fn=lambda: os.close(1)).end()
    assert (code, err) == (0, "")
