"""What must hold on real terminals, with the real program: its words, its colours, its size, its quiet, its end."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import psutil
import pytest

from engine import store
from tests.pty.real_terminal import COLOUR, running

THROUGHPUT, LATENCY = "▄▞▀▚▗▘▖▝●", "◇⠁⠂⠄⡀⢀⠠⠐⠈⠒⠤⣀⠊⠔⡠⢠⠃⡎⠑"


def ready(terminal: object) -> None:
    terminal.shows("peak 128", "Deploy 32", "finished")  # type: ignore[attr-defined]


@pytest.mark.parametrize("term", ["xterm-256color", "tmux-256color", "screen-256color"])
def test_the_curves_differ_in_colour_without_truecolor(tmp_path: Path, term: str) -> None:
    with running(tmp_path, "whole", TERM=term, COLORTERM=None) as terminal:
        ready(terminal)
        assert b"38;2;" not in terminal.output
        throughput, latency = terminal.colours_of("●"), terminal.colours_of("◇")
        assert throughput
        assert latency
        assert throughput.isdisjoint(latency)


def test_no_color_means_no_colour_code_at_all(tmp_path: Path) -> None:
    with running(tmp_path, "whole", NO_COLOR="1", COLORTERM="truecolor") as terminal:
        ready(terminal)
        terminal.send("e")
        terminal.shows("Batch sizes")
        terminal.send("\x1b")
        terminal.until(lambda: "Batch sizes" not in terminal.text)
        # 39 and 49 are the terminal's own colours.
        codes = {code for found in COLOUR.findall(bytes(terminal.output)) for code in found.split(b";")}
        assert codes <= {b"", b"0", b"1", b"2", b"3", b"4", b"7", b"22", b"23", b"24", b"27", b"39", b"49"}
        assert "●" in terminal.text
        assert "◇" in terminal.text


def test_an_empty_no_color_means_colours(tmp_path: Path) -> None:
    with running(tmp_path, "whole", NO_COLOR="", COLORTERM="truecolor") as terminal:
        ready(terminal)
        assert b"38;2;" in terminal.output


@pytest.mark.parametrize("theme", ["light", "terminal", "high-contrast"])
def test_every_text_can_be_told_from_what_is_behind_it(tmp_path: Path, theme: str) -> None:
    folder = tmp_path / "config" / "batchpeak"
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text(f'theme = "{theme}"\n')
    with running(tmp_path, "whole", COLORTERM="truecolor") as terminal:
        ready(terminal)
        for front, behind in terminal.pairs():
            assert front != behind or front == "default"
            if theme == "terminal":
                # On the terminal's own background neither of its two ends may be used as a text colour.
                assert behind != "default" or front not in ("black", "white", "brightwhite", "brightblack")
        if theme == "terminal":
            assert b"38;2;" not in terminal.output
            assert b"48;2;" not in terminal.output


@pytest.mark.parametrize(
    "changes",
    [{"LC_ALL": "C"}, {"LC_ALL": "en_US.ISO-8859-1"}, {"PYTHONIOENCODING": "latin-1"}],
    ids=["C", "latin-1", "stream"],
)
def test_a_terminal_without_utf_8_gets_ascii_only(tmp_path: Path, changes: dict[str, str]) -> None:
    with running(tmp_path, "whole", **changes) as terminal:
        ready(terminal)
        assert bytes(terminal.output).isascii()
        assert "*" in terminal.text
        assert "[38" not in terminal.text


def test_plain_draws_with_ascii_only(tmp_path: Path) -> None:
    with running(tmp_path, "whole", "--plain") as terminal:
        ready(terminal)
        terminal.send("s")
        terminal.shows("Copy and save")
        assert bytes(terminal.output).isascii()


def test_the_screen_survives_any_size_and_is_whole_again(tmp_path: Path) -> None:
    with running(tmp_path, "whole") as terminal:
        ready(terminal)
        before = terminal.text
        terminal.resize(40, 9)
        terminal.shows("needs 44x10")
        for columns, rows in ((10, 3), (1, 1), (200, 50), (1, 24)):
            terminal.resize(columns, rows)
        terminal.resize(80, 24)
        terminal.until(lambda: terminal.text == before, "the screen as before")


def test_quitting_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with running(tmp_path, "whole") as terminal:
        ready(terminal)
        terminal.send("q")
        assert terminal.ends() == 0
        assert terminal.restored()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_end_it_with_their_code_and_restore_the_terminal(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with running(tmp_path, "endless", "--save") as terminal:
        terminal.shows("stable", "measuring")
        terminal.process.send_signal(number)
        assert terminal.ends() == code
        assert terminal.restored()
        (path,) = store.run_files(tmp_path / "state" / "batchpeak" / "runs")
        assert store.record(path).points


def test_a_kill_keeps_the_points_on_disk(tmp_path: Path) -> None:
    with running(tmp_path, "endless", "--save") as terminal:
        terminal.shows("stable")
        terminal.process.kill()
        assert terminal.ends() == -signal.SIGKILL
        (path,) = store.run_files(tmp_path / "state" / "batchpeak" / "runs")
        assert store.record(path).points[1].state == "stable"


def test_a_dropped_line_ends_the_program(tmp_path: Path) -> None:
    with running(tmp_path, "endless", "--save") as terminal:
        terminal.shows("stable")
        terminal.hang_up()
        terminal.process.wait(20)


@pytest.mark.parametrize("how", ["key", "signal"])
def test_ctrl_c_cancels_first_and_quits_then(tmp_path: Path, how: str) -> None:
    def interrupt() -> None:
        terminal.send("\x03") if how == "key" else terminal.process.send_signal(signal.SIGINT)

    with running(tmp_path, "endless", "--save") as terminal:
        terminal.shows("stable")
        interrupt()
        terminal.shows("cancelled", "what was measured is kept")
        assert terminal.process.poll() is None
        interrupt()
        assert terminal.ends() == 130
        assert terminal.restored()


def test_ctrl_z_pauses_and_fg_brings_the_screen_back(tmp_path: Path) -> None:
    with running(tmp_path, "endless") as terminal:
        terminal.shows("stable")
        terminal.send("\x1a")
        there = psutil.Process(terminal.process.pid)
        terminal.until(lambda: there.status() == psutil.STATUS_STOPPED, "stopped")
        assert terminal.restored()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.shows("peak 128", "measuring")
        terminal.until(
            lambda: "\npaus" not in terminal.text and "paused" not in terminal.text, "measuring again"
        )


def test_nothing_is_written_while_nothing_happens(tmp_path: Path) -> None:
    with running(tmp_path, "whole") as terminal:
        ready(terminal)
        terminal.until(lambda: terminal.quiet_for(0.5) == 0, "the last frame")
        assert terminal.quiet_for(2.0) == 0


def test_a_long_sweep_writes_little(tmp_path: Path) -> None:
    with running(tmp_path, "endless", "--save") as terminal:
        terminal.shows("stable")

        def blocks() -> int:
            (path,) = store.run_files(tmp_path / "state" / "batchpeak" / "runs")
            return path.read_bytes().count(b'"event":"block"')

        first, before = blocks(), len(terminal.output)
        terminal.until(lambda: blocks() >= first + 100, "a hundred blocks")
        # Twenty blocks a second at the most: 10 KiB/s are 512 bytes for each.
        assert (len(terminal.output) - before) / (blocks() - first) <= 512


def test_keys_are_answered_over_a_slow_link(tmp_path: Path) -> None:
    with running(tmp_path, "endless", bytes_per_s=25 * 1024) as terminal:
        terminal.shows("stable")
        for key, there in (("q", True), ("n", False), ("q", True), ("n", False)):
            before = len(terminal.output)
            terminal.send(key)
            terminal.until(lambda there=there: ("Quit while measuring?" in terminal.text) == there, key)  # type: ignore[misc]
            # What lies on the line before the answer is through: half a second of such a line at the most.
            assert len(terminal.output) - before <= 25 * 1024 // 2


def test_the_copy_goes_to_the_clipboard_over_the_line(tmp_path: Path) -> None:
    with running(tmp_path, "whole") as terminal:
        ready(terminal)
        terminal.send("s")
        terminal.shows("Markdown table")
        terminal.send("\r")
        terminal.shows(".md")
        assert re.search(rb"\x1b\]52;c;[A-Za-z0-9+/=]{100,}", bytes(terminal.output))
        assert list(tmp_path.glob("batchpeak-*.md"))


def test_no_mouse_leaves_the_selection_to_the_terminal(tmp_path: Path) -> None:
    with running(tmp_path, "whole", "--no-mouse") as terminal:
        ready(terminal)
        assert b"\x1b[?1000h" not in terminal.output
        assert b"\x1b[?1003h" not in terminal.output
