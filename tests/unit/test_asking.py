"""Questions to other programs: answered, given up after a time, ended at once."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from engine.asking import Asking

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def test_the_answer_comes_with_its_code() -> None:
    done = Asking().run([sys.executable, "-c", "print('yes'); raise SystemExit(3)"], timeout_s=60.0)
    assert (done.stdout.strip(), done.returncode) == ("yes", 3)


def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        Asking().run(SLEEPER, timeout_s=0.1)


def test_stop_ends_what_runs_and_lets_nothing_begin() -> None:
    asking = Asking()
    ended = threading.Event()

    def ask() -> None:
        with pytest.raises(subprocess.SubprocessError):
            asking.run(SLEEPER, timeout_s=600.0)
        ended.set()

    thread = threading.Thread(target=ask)
    thread.start()
    while not asking._children and thread.is_alive():
        pass
    asking.stop()
    asking.stop()
    thread.join(20.0)
    assert ended.is_set()
    with pytest.raises(subprocess.SubprocessError, match="nobody waits"):
        asking.run(SLEEPER, timeout_s=600.0)


def test_a_program_that_is_not_there_is_an_os_error() -> None:
    with pytest.raises(OSError, match="nowhere"):
        Asking().run(["/nowhere/at/all"], timeout_s=1.0)


def test_stop_ends_all_that_run_side_by_side() -> None:
    asking = Asking()
    ended: list[int] = []

    def ask(number: int) -> None:
        with pytest.raises(subprocess.SubprocessError):
            asking.run(SLEEPER, timeout_s=600.0)
        ended.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    while len(asking._children) < 2 and any(thread.is_alive() for thread in threads):
        pass
    asking.stop()
    for thread in threads:
        thread.join(20.0)
    assert sorted(ended) == [1, 2]
