"""The kill ladder, losses and last words, with real processes that need no torch."""

from __future__ import annotations

import os
import site
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from engine import wire
from engine.errors import WorkerLostError
from engine.plan import Plan
from engine.process import RUNG_S, Cancelled, WorkerProcess, _import_path

SCRIPT = [sys.executable, str(Path(__file__).with_name("torchless_worker.py"))]


@pytest.fixture
def start() -> Iterator[Callable[..., WorkerProcess]]:
    started: list[WorkerProcess] = []

    def begin(**arguments: str) -> WorkerProcess:
        process = WorkerProcess({}, command=SCRIPT)
        started.append(process)
        process.request(wire.Load(Plan(model="scripted", model_args=arguments)))
        return process

    yield begin
    for process in started:
        process.close()


def cancel_once_hanging(process: WorkerProcess, log: Path) -> threading.Thread:
    def wait_then_cancel() -> None:
        while not (log.exists() and "hanging" in log.read_text()):
            os.sched_yield()
        process.cancel()

    thread = threading.Thread(target=wait_then_cancel)
    thread.start()
    return thread


def test_a_block_comes_back(start: Callable[..., WorkerProcess]) -> None:
    process = start()
    assert isinstance(process.request(wire.Prepare(8)), wire.PreparedReply)
    reply = process.request(wire.Measure(8, 3))
    assert isinstance(reply, wire.BlockReply)
    assert (reply.block.batch_size, reply.block.round) == (8, 3)


@pytest.mark.parametrize("deaf", ["", "term"])
def test_a_deaf_worker_is_gone_within_two_seconds_of_cancel(
    start: Callable[..., WorkerProcess], tmp_path: Path, deaf: str
) -> None:
    log = tmp_path / "log"
    process = start(hang_at="8", log=str(log), deaf=deaf)
    thread = cancel_once_hanging(process, log)
    with pytest.raises(Cancelled):
        process.request(wire.Measure(8))
    thread.join()
    assert not process.alive


def test_the_ladder_has_two_rungs_in_two_seconds() -> None:
    assert 2 * RUNG_S < 2.0


def test_an_obedient_worker_survives_a_cancel_and_goes_on(start: Callable[..., WorkerProcess]) -> None:
    process = start()
    process.cancel()
    with pytest.raises(Cancelled):
        process.request(wire.Prepare(8))
    process.forget_cancel()
    assert process.alive
    for size in (8, 16):
        reply = process.request(wire.Prepare(size))
        assert isinstance(reply, wire.PreparedReply)
        assert reply.prepared.batch_size == size


def test_a_cancel_between_two_replies_leaves_no_stray_answer(start: Callable[..., WorkerProcess]) -> None:
    process = start()
    replies = process.replies(wire.Lap(0, 64, 8))
    assert isinstance(next(replies), wire.RaceStep)
    process.cancel()
    with pytest.raises(Cancelled):
        next(replies)
    process.forget_cancel()
    reply = process.request(wire.Prepare(3))
    assert isinstance(reply, wire.PreparedReply)
    assert reply.prepared.batch_size == 3


def test_a_killed_worker_is_told_with_its_signal_and_last_words(start: Callable[..., WorkerProcess]) -> None:
    process = start(die_at="8")
    with pytest.raises(WorkerLostError, match="killed by the system") as caught:
        process.request(wire.Measure(8))
    assert caught.value.signal == 9
    assert caught.value.last_lines[-1] == "about to end"


def test_an_exit_code_is_told(start: Callable[..., WorkerProcess]) -> None:
    process = start(die_at="8", exit_with="3")
    with pytest.raises(WorkerLostError, match="exit code 3") as caught:
        process.request(wire.Measure(8))
    assert caught.value.signal is None


def test_close_leaves_no_process_behind(start: Callable[..., WorkerProcess]) -> None:
    process = start(deaf="term")
    pid = process.pid
    process.close()
    assert not psutil.pid_exists(pid)
    process.close()


def test_a_program_that_does_not_exist_is_an_error_with_a_title() -> None:
    with pytest.raises(WorkerLostError, match="could not be started"):
        WorkerProcess({}, command=["/nonexistent/python"])


def test_output_that_is_no_reply_is_an_error() -> None:
    process = WorkerProcess({}, command=[sys.executable, "-c", "print('hello', flush=True); input()"])
    try:
        with pytest.raises(WorkerLostError, match="no reply"):
            process.request(wire.Prepare(1))
    finally:
        process.close()


def test_the_child_is_told_where_the_engine_is_only_where_it_would_not_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    assert _import_path(tmp_path) == {"PYTHONPATH": f"{tmp_path}{os.pathsep}/mine"}
    monkeypatch.delenv("PYTHONPATH")
    assert _import_path(tmp_path) == {"PYTHONPATH": str(tmp_path)}
    assert _import_path(Path(site.getsitepackages()[0]).resolve()) == {}
