"""The terminal is sent what changes on it and no more, by the real program."""

from __future__ import annotations

from pathlib import Path

from tests.pty.real_terminal import RealTerminal, running


def ready(terminal: RealTerminal) -> None:
    terminal.shows("peak 128", "Deploy 32", "finished")
    terminal.until(lambda: terminal.quiet_for(0.5) == 0, "the last frame")


def test_a_dialog_opens_and_closes_in_less_than_a_screenful_of_bytes(tmp_path: Path) -> None:
    with running(tmp_path, "whole") as terminal:
        ready(terminal)
        for key, there in (("e", True), ("\x1b", False)):
            before = len(terminal.output)
            terminal.send(key)
            terminal.until(lambda there=there: ("Batch sizes" in terminal.text) == there, "the dialog")  # type: ignore[misc]
            terminal.until(lambda: terminal.quiet_for(0.5) == 0, "the frame")
            # A frame of this size took 13 to 20 KB when all of it was written.
            assert len(terminal.output) - before < 8_000


def test_what_another_program_wrote_goes_away_by_a_key(tmp_path: Path) -> None:
    with running(tmp_path, "whole") as terminal:
        ready(terminal)
        with terminal._lock:
            terminal._stream.feed(b"\x1b[8;4Ha message to all\x1b[9;4Hgoing down at noon")
        assert "going down" in terminal.text
        terminal.send("\x0c")
        terminal.until(lambda: "going down" not in terminal.text and "to all" not in terminal.text, "redrawn")
        terminal.shows("peak 128", "Deploy 32")


def test_a_resize_draws_everything_anew(tmp_path: Path) -> None:
    with running(tmp_path, "whole") as terminal:
        ready(terminal)
        with terminal._lock:
            terminal.screen.reset()  # as a terminal that keeps nothing
        terminal.resize(100, 30)
        terminal.shows("peak 128", "Deploy 32", "finished")
