"""The measuring process as the session meets it: over its pipes, with user code that does all that user code may do."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import wire
from engine.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
SCRIPTED = Path(__file__).with_name("scripted_worker.py")


class Worker:
    """A worker under test; every wait has an end."""

    def __init__(self, *entry: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", *(entry or (str(SCRIPTED),))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            start_new_session=True,
            bufsize=0,
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        # Drained at all times, as the session does: a full pipe would stop a model that prints.
        self.printed: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._drain = threading.Thread(target=self._read_stderr)
        self._drain.start()
        self._lines = os.fdopen(os.dup(self.stdout.fileno()), "rb")

    def _read_stderr(self) -> None:
        for line in self.stderr:
            self.printed.put(line)

    def wait_for_print(self, text: bytes) -> None:
        while text not in self.printed.get(timeout=60):
            pass

    def all_prints(self) -> bytes:
        """Everything printed until the worker's end and not looked at yet."""
        self._drain.join(60)
        return b"".join(self.printed.get() for _ in range(self.printed.qsize()))

    def send(self, *commands: wire.Command) -> None:
        self.stdin.write(b"".join(map(wire.encode, commands)))

    def reply(self) -> wire.Reply:
        return wire.decode_reply(self._lines.readline())

    def ask(self, command: wire.Command) -> wire.Reply:
        self.send(command)
        return self.reply()

    def load(self, model: str, **options: Any) -> wire.Reply:
        """The reply to a load; the Hello before the first one is taken too."""
        reply = self.ask(wire.Load(Plan(model=model, **options)))
        if isinstance(reply, wire.Hello):
            assert reply.pid == self.process.pid
            reply = self.reply()
        return reply

    def rest_of_replies(self) -> bytes:
        return self._lines.read()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self._drain.join(10)
        for stream in (self._lines, self.stdin, self.stdout, self.stderr):
            stream.close()


@pytest.fixture
def worker() -> Iterator[Worker]:
    running = Worker()
    yield running
    running.close()


@pytest.fixture(scope="module")
def warm() -> Iterator[Worker]:
    """One worker for the tests that leave it usable: starting torch takes seconds."""
    running = Worker()
    yield running
    assert running.process.poll() is None
    running.close()


@pytest.fixture(scope="module")
def real() -> Iterator[Worker]:
    """A worker with the real loader."""
    running = Worker("-m", "engine.worker")
    yield running
    running.close()


def prepared(reply: wire.Reply) -> wire.PreparedReply:
    assert isinstance(reply, wire.PreparedReply), reply
    return reply


def test_a_size_is_made_ready_and_measured_and_the_worker_leaves_when_told(worker: Worker) -> None:
    ready = worker.load("linear", threads=1)
    assert isinstance(ready, wire.ReadyReply)
    assert (ready.name, ready.device, ready.threads) == ("linear", "cpu", 1)
    size = prepared(worker.ask(wire.Prepare(4))).prepared
    assert size.effective_batch_size == 4
    assert size.warmup_calls >= 2
    assert size.calls_per_block % size.group == 0
    measured = worker.ask(wire.Measure(4, round=3))
    assert isinstance(measured, wire.BlockReply)
    block = measured.block
    assert (block.batch_size, block.round, block.items) == (4, 3, 4 * block.calls)
    assert len(block.call_ms) == block.calls // block.group
    assert sum(block.call_ms) * block.group / 1e3 == pytest.approx(block.seconds)
    assert isinstance(worker.ask(wire.Release(4)), wire.Done)
    assert isinstance(worker.ask(wire.Measure(4)), wire.FailedReply)
    worker.send(wire.Bye())
    assert worker.process.wait(10) == 0
    assert worker.rest_of_replies() == b""


def test_threads_are_what_the_plan_says_whatever_the_users_code_set_on_import(warm: Worker) -> None:
    ready = warm.load("linear", threads=2)
    assert isinstance(ready, wire.ReadyReply)
    assert ready.threads == 2


def test_prints_of_the_model_and_of_c_code_reach_stderr_and_never_the_replies(worker: Worker) -> None:
    worker.load("prints")
    prepared(worker.ask(wire.Prepare(1)))
    worker.send(wire.Bye())
    assert worker.rest_of_replies() == b""
    assert b'{"reply": "done"}' in worker.all_prints()


def test_input_in_the_model_cannot_eat_commands(warm: Worker) -> None:
    warm.load("asks")
    prepared(warm.ask(wire.Prepare(1)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_that_comes_back_into_the_worker_writes_no_second_reply(warm: Worker) -> None:
    warm.load("forks")
    assert prepared(warm.ask(wire.Prepare(1))).prepared.batch_size == 1
    assert isinstance(warm.ask(wire.Release(1)), wire.Done)
    assert prepared(warm.ask(wire.Prepare(2))).prepared.batch_size == 2


def test_sys_exit_while_loading_is_told_and_the_worker_goes_on(warm: Worker) -> None:
    failed = warm.load("exits")
    assert isinstance(failed, wire.FailedReply)
    assert "sys.exit(3)" in failed.failure.message
    assert isinstance(warm.ask(wire.Load(Plan(model="linear"))), wire.ReadyReply)


def test_sys_exit_at_one_size_fails_that_size_alone(warm: Worker) -> None:
    warm.load("exits-in-call")
    prepared(warm.ask(wire.Prepare(1)))
    failed = warm.ask(wire.Prepare(2))
    assert isinstance(failed, wire.FailedReply)
    assert failed.failure.where.startswith(str(SCRIPTED))
    assert isinstance(warm.ask(wire.Measure(1)), wire.BlockReply)


def test_os_exit_ends_the_process_with_its_last_words_on_stderr(worker: Worker) -> None:
    worker.send(wire.Load(Plan(model="leaves")))
    assert worker.process.wait(60) == 7
    assert b"last words" in worker.all_prints()


def test_threads_of_the_users_code_do_not_keep_the_worker(worker: Worker) -> None:
    worker.load("threads")
    worker.send(wire.Bye())
    assert worker.process.wait(10) == 0


def test_a_device_that_is_not_there_is_a_usage_failure_with_a_remedy(warm: Worker) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a cuda device")
    failed = warm.load("linear", device="cuda")
    assert isinstance(failed, wire.FailedReply)
    assert failed.usage
    assert "--device cpu" in failed.remedy


def test_a_late_stop_is_answered_once_and_stops_nothing_that_comes_after_it(warm: Worker) -> None:
    warm.load("linear")
    warm.send(wire.Stop())
    assert isinstance(warm.reply(), wire.Stopped)
    assert isinstance(warm.ask(wire.Prepare(1)), wire.PreparedReply)


def test_a_stop_in_time_replaces_the_reply_of_the_command(warm: Worker) -> None:
    warm.load("linear")
    warm.send(wire.Prepare(1), wire.Stop(), wire.Prepare(2))
    assert isinstance(warm.reply(), wire.Stopped)
    assert prepared(warm.reply()).prepared.batch_size == 2


def test_both_lanes_of_a_race_answer_alike(warm: Worker) -> None:
    warm.load("linear")
    for lane, batch_size, calls in ((0, 1, 10), (1, 4, 3)):
        warm.send(wire.Lap(lane, 10, batch_size))
        step = warm.reply()
        while isinstance(step, wire.RaceStep):
            assert step.total == 10
            step = warm.reply()
        assert isinstance(step, wire.LapDone)
        assert len(step.call_ms) == calls
        assert step.total_ms >= sum(step.call_ms) * 0.999
    agreed = warm.ask(wire.CompareLaps())
    assert isinstance(agreed, wire.Agreement)
    assert agreed.agree is True


def in_the_long_call(worker: Worker) -> None:
    worker.load("in-c")
    worker.send(wire.Prepare(2))
    worker.wait_for_print(b"in the long call")


def test_the_worker_leaves_when_its_commands_end_even_in_a_long_c_call(worker: Worker) -> None:
    in_the_long_call(worker)
    worker.stdin.close()
    worker.process.wait(2)


def test_sigterm_ends_the_worker_even_in_a_long_c_call(worker: Worker) -> None:
    in_the_long_call(worker)
    worker.process.terminate()
    assert worker.process.wait(2) == -signal.SIGTERM


def test_ctrl_c_in_the_terminal_is_not_the_workers_business(warm: Worker) -> None:
    warm.load("linear")
    warm.process.send_signal(signal.SIGINT)
    assert isinstance(warm.ask(wire.Prepare(1)), wire.PreparedReply)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_the_worker_is_killed_with_its_parent_though_its_commands_stay_open() -> None:
    read, write = os.pipe()
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, time; subprocess.Popen(sys.argv[1:], start_new_session=True); time.sleep(3600)",
            *(sys.executable, "-P", str(SCRIPTED)),
        ],
        stdin=read,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    os.close(read)
    assert parent.stdout
    assert isinstance(wire.decode_reply(parent.stdout.readline()), wire.Hello)
    parent.kill()
    parent.wait(10)
    # The reply stream ends when its last writer is gone; `write` still holds the command stream open.
    assert parent.stdout.read() == b""
    os.close(write)
    parent.stdout.close()


def test_the_built_in_model_is_measured_as_a_service_would_call_it(real: Worker) -> None:
    ready = real.load("fashion-cnn", threads=1)
    assert isinstance(ready, wire.ReadyReply)
    assert (ready.unit, ready.threads) == ("images/s", 1)
    size = prepared(real.ask(wire.Prepare(8))).prepared
    assert (size.effective_batch_size, size.finite, size.all_zero) == (8, True, False)
    measured = real.ask(wire.Measure(8))
    assert isinstance(measured, wire.BlockReply)
    assert measured.block.seconds > 0


USERS_MODEL = """
import dataclasses
import torch
from engine import WIDTH

@dataclasses.dataclass
class Answer:
    loss: object
    logits: torch.Tensor

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, 3)
    def forward(self, images):
        import engine
        assert engine.WIDTH == 12
        return Answer(None, self.layer(images.flatten(1)))
"""


def test_a_project_with_its_own_engine_is_measured_and_so_is_the_next_model(
    real: Worker, tmp_path: Path
) -> None:
    (tmp_path / "engine.py").write_text("WIDTH = 12\n", encoding="utf-8")
    (tmp_path / "model.py").write_text(USERS_MODEL, encoding="utf-8")
    ready = real.load(f"{tmp_path / 'model.py'}:Net", input="3x2x2")
    assert isinstance(ready, wire.ReadyReply), ready
    assert prepared(real.ask(wire.Prepare(4))).prepared.effective_batch_size == 4
    assert isinstance(real.ask(wire.Measure(4)), wire.BlockReply)
    assert isinstance(real.load("fashion-cnn"), wire.ReadyReply)
    assert prepared(real.ask(wire.Prepare(1))).prepared.effective_batch_size == 1


def test_a_mode_that_the_compiler_does_not_have_is_a_usage_failure(warm: Worker) -> None:
    failed = warm.load("linear", compile="fastest")
    assert isinstance(failed, wire.FailedReply)
    assert (failed.usage, failed.failure.title) == (True, "bad value for --compile")


def test_a_compiler_that_fails_is_flagged_and_the_model_runs_eager(tmp_path: Path) -> None:
    running = Worker(CXX="/nowhere/c++", TORCHINDUCTOR_CACHE_DIR=str(tmp_path))
    try:
        running.load("pointwise", compile="default")
        assert prepared(running.ask(wire.Prepare(2))).prepared.compiled is False
        assert isinstance(running.ask(wire.Measure(2)), wire.BlockReply)
    finally:
        running.close()
