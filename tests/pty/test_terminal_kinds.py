"""Kinds of terminals and what happens to them while a model is measured: old ones, none, a resize, a shell's job control, a model that prints."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from engine import events, store
from tests.pty.real_terminal import COLOUR, RealTerminal, environment, running

SHORT = ("--batch-sizes", "1,2", "--budget", "1s", "--no-confirm", "--no-save", "--threads", "1")
PROGRAM = "import sys; from tui.cli import main; sys.exit(main())"
COLOURED = {b"%d" % code for code in (*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108))}
NOISY_MODEL = """
import os, sys
import torch

print("NOISE at import"); print("NOISE to stderr", file=sys.stderr); os.write(1, b"NOISE to 1\\n")

class Net(torch.nn.Module):
    def forward(self, x):
        print("NOISE in forward")
        os.write(2, b"NOISE to 2\\n")
        if len(x) == 4:
            print("LAST WORDS", file=sys.stderr, flush=True)
            os._exit(3)
        return x.flatten(1)[:, :10] + 1.0
"""


@pytest.mark.parametrize(
    ("term", "colours"), [("vt100", False), ("vt220", False), ("linux", True), ("ansi", True)]
)
def test_terminals_with_few_characters_get_ascii_and_only_colours_that_they_have(
    tmp_path: Path, term: str, colours: bool
) -> None:
    with running(tmp_path, "whole", TERM=term) as terminal:
        terminal.shows("peak 128", "Deploy 32", "finished")
        assert terminal.text.isascii()
        codes = {code for found in COLOUR.findall(bytes(terminal.output)) for code in found.split(b";")}
        assert bool(codes & COLOURED) == colours


def test_a_dumb_terminal_gets_the_headless_sweep_and_a_line_that_says_so(tmp_path: Path) -> None:
    with running(tmp_path, "real", *SHORT, TERM="dumb") as terminal:
        assert terminal.ends() == 0
        assert b"\x1b" not in terminal.output
        # A long line is folded by the terminal.
        said = " ".join(terminal.output.decode().split())
        assert "TERM names none. A sweep is measured instead." in said


def test_without_a_terminal_the_sweep_is_printed_plainly(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, *SHORT],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        check=False,
    )
    assert finished.returncode == 0
    assert "\x1b" not in finished.stdout + finished.stderr
    assert "images/s" in finished.stdout


def test_the_screen_is_whole_after_resizes_while_measuring(tmp_path: Path) -> None:
    with running(tmp_path, "endless") as terminal:
        terminal.shows("stable", "measuring")
        terminal.resize(40, 10)
        terminal.shows("needs 44x10, this is 40x10")
        terminal.resize(1, 1)
        terminal.until(lambda: terminal.quiet_for(0.3) == 0, "nothing left to draw on one cell")
        terminal.resize(80, 24)
        terminal.shows("peak 128", "Deploy 32", "measuring", "? help")
        before = terminal.text
        terminal.until(lambda: terminal.text != before, "figures that go on")


def test_a_shells_job_control_stops_it_and_brings_it_back(tmp_path: Path) -> None:
    command = f"{sys.executable} -m tests.pty.scripted_app endless"
    terminal = RealTerminal(["bash", "--norc", "-i"], environ=environment(tmp_path, PS1="at-your-service> "))
    try:
        terminal.shows("at-your-service>")
        terminal.send(f"{command}\n")
        terminal.shows("stable", "measuring")
        terminal.send("\x1a")
        terminal.until(lambda: re.search(r"Stopped|Suspended", terminal.text), "the shell's word")
        terminal.send("echo hel''lo\n")
        terminal.shows("hello")
        terminal.send("fg\n")
        terminal.shows("peak 128", "measuring", "? help")
        terminal.until(lambda: "hello" not in terminal.text, "the shell's lines gone")
        terminal.send("q")
        terminal.shows("Quit while measuring?")
        terminal.send("y")
        # pyte keeps one screen: the shell writes over what the interface left.
        terminal.shows("at-your-service>")
        terminal.send("echo code $?\n")
        terminal.shows("code 130")
    finally:
        terminal.send("exit\n")
        terminal.close()


def test_no_block_is_asked_for_while_it_is_stopped(tmp_path: Path) -> None:
    options = (
        "interface",
        "--batch-sizes",
        "1,2",
        "--budget",
        "60s",
        "--precision",
        "0.1%",
        "--threads",
        "1",
    )
    folder = tmp_path / "state" / "batchpeak" / "runs"

    def told() -> list[events.AnyEvent]:
        found = store.run_files(folder) if folder.is_dir() else []
        return list(events.decode_lines(found[0].read_bytes().splitlines(keepends=True))) if found else []

    def blocks(of: list[events.AnyEvent]) -> int:
        return sum(isinstance(event, events.BlockMeasured) for event in of)

    with running(tmp_path, "real", *options) as terminal:
        terminal.until(lambda: blocks(told()) >= 2, "the first blocks")
        there = psutil.Process(terminal.process.pid)
        worker = there.children()[0]

        def at_rest() -> bool:
            before = worker.cpu_times()
            terminal.quiet_for(0.3)
            return worker.cpu_times() == before

        terminal.send("\x1a")
        terminal.until(lambda: there.status() == psutil.STATUS_STOPPED, "stopped")
        terminal.until(at_rest, "a measuring process that measures nothing")
        at = blocks(told())
        terminal.process.send_signal(signal.SIGCONT)  # as by fg
        terminal.until(lambda: blocks(told()) > at + 2, "measuring again")


def test_what_a_model_prints_is_not_on_the_screen_and_its_last_words_are_told(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY_MODEL)
    options = (
        "noisy.py:Net",
        "--input",
        "3x8x8",
        "--batch-sizes",
        "1,2,4",
        "--budget",
        "1s",
        "--no-confirm",
        "--threads",
        "1",
    )
    with running(tmp_path, "real", "interface", *options, columns=120, rows=40) as terminal:
        terminal.shows("finished", "3 of 3 sizes done")
        assert "NOISE" not in terminal.text
        assert b"NOISE" not in terminal.output
        terminal.send("G")
        terminal.shows("LAST WORDS")
