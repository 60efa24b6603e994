"""The terminal shows the same after the shortened output as after the whole; pyte is the terminal."""

from __future__ import annotations

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.lean_output import LeanOutput, style_change

COLUMNS, ROWS = 24, 6
RED, BOLD_RED, PAPER = "31", "1;31", "38;5;188;48;5;233"


def put(row: int, column: int, text: str, style: str = "") -> str:
    """As Textual writes a piece: a move, the style, the text, the reset."""
    return f"\x1b[{row};{column}H" + (f"\x1b[{style}m{text}\x1b[0m" if style else text)


class Pair:
    """Two terminals: one is sent everything, the other what is left of it."""

    def __init__(self) -> None:
        self.output = LeanOutput()
        self.whole, self.short = pyte.Screen(COLUMNS, ROWS), pyte.Screen(COLUMNS, ROWS)
        self._streams = pyte.Stream(self.whole), pyte.Stream(self.short)

    def send(self, data: str) -> str:
        left = self.output.lean(data)
        for stream, sent in zip(self._streams, (data, left), strict=True):
            stream.feed(sent)
        for row in range(ROWS):
            for column in range(COLUMNS):
                assert self.short.buffer[row][column] == self.whole.buffer[row][column], (row, column)
        whole, short = self.whole.cursor, self.short.cursor
        # Beyond the last column a cursor waits to wrap; where it is told to stand there, it stands in it.
        assert (short.x, short.y) == (min(whole.x, COLUMNS - 1), whole.y) or short.x == whole.x
        return left


def test_what_the_terminal_shows_already_is_not_sent_again() -> None:
    pair = Pair()
    frame = put(1, 1, "batch", BOLD_RED) + put(2, 1, "images/s", PAPER) + "\x1b[1;1H"
    assert "batch" in pair.send(frame)
    assert pair.send(frame) == ""


def test_of_a_line_only_the_cells_that_differ_are_sent() -> None:
    pair = Pair()
    pair.send(put(3, 1, "measuring 32 · 0:04", RED))
    left = pair.send(put(3, 1, "measuring 32 · 0:05", RED))
    assert left == "\x1b[3;19H\x1b[31m5\x1b[m"


def test_a_colour_alone_is_a_difference() -> None:
    pair = Pair()
    pair.send(put(1, 1, "word", RED))
    assert "word" in pair.send(put(1, 1, "word", BOLD_RED))


def test_pieces_in_one_style_set_it_once() -> None:
    left = Pair().send("\x1b[1;1H" + "".join(f"\x1b[{PAPER}m{word}\x1b[0m" for word in ("  a", "  b", "  c")))
    assert left.count("\x1b[") == left.count("H") + 2
    assert "  a  b  c" in left


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        ("", "31", "\x1b[31m"),
        ("31", "", "\x1b[m"),
        ("38;5;1;48;5;2", "38;5;3;48;5;2", "\x1b[38;5;3m"),
        ("38;2;1;2;3;48;5;2", "38;2;1;2;3;48;5;9", "\x1b[48;5;9m"),
        ("31", "1;31", "\x1b[1m"),
        ("1;31", "31", "\x1b[0;31m"),
        ("31;48;5;2", "31", "\x1b[0;31m"),
        ("1;31", "4;92", "\x1b[0;4;92m"),
        ("31;1", "1;31", ""),
        (None, "31", "\x1b[0;31m"),
    ],
)
def test_a_style_is_changed_by_what_differs(before: str | None, after: str, sent: str) -> None:
    assert style_change(before, after) == sent


@pytest.mark.parametrize("disturbance", ["\x1b[?1049h", "\x1b[2J", "\x1b[3J", "\x1bc", "\t", "\x1b[1L"])
def test_after_what_may_change_anything_all_is_sent_again(disturbance: str) -> None:
    pair = Pair()
    frame = put(1, 1, "batch", RED)
    pair.send(frame)
    pair.send(disturbance)
    assert "batch" in pair.send(frame)


def test_after_forget_all_is_sent_again() -> None:
    pair = Pair()
    pair.send(put(1, 1, "batch"))
    pair.output.forget()
    assert "batch" in pair.send(put(1, 1, "batch"))


@pytest.mark.parametrize(
    "harmless", ["\x1b[?25l", "\x1b[?2026h", "\x1b]22;default\x07", "\x1b[?1000h", "\x1b[<u"]
)
def test_what_draws_nothing_is_passed_on_and_changes_nothing(harmless: str) -> None:
    pair = Pair()
    pair.send(put(1, 1, "batch"))
    assert LeanOutput().lean(harmless) == harmless
    assert pair.output.lean(put(1, 1, "batch") + harmless).count("batch") == 0


def test_wide_characters_are_always_written() -> None:
    pair = Pair()
    line = put(2, 1, "模型 ab", RED)
    for _ in range(2):
        assert "模型 ab" in pair.send(line)
    pair.send(put(2, 1, "plain text here"))
    assert pair.send(put(2, 1, "plain text here")).count("plain") == 0


def test_a_style_that_another_program_left_on_is_ended_first() -> None:
    output, screen = LeanOutput(), pyte.Screen(COLUMNS, ROWS)
    stream = pyte.Stream(screen)
    stream.feed("\x1b[7m")
    stream.feed(output.lean(put(1, 1, "plain")))
    assert not screen.buffer[0][0].reverse
    stream.feed("\x1b[1;31m")
    output.forget()
    stream.feed(output.lean(put(1, 1, "plain") + put(2, 1, "red", RED)))
    assert not screen.buffer[0][0].bold
    assert not screen.buffer[1][0].bold


def test_what_was_drawn_for_a_larger_terminal_is_not_taken_for_shown() -> None:
    output = LeanOutput()
    output.forget(COLUMNS, ROWS)
    whole, short = pyte.Screen(COLUMNS, ROWS), pyte.Screen(COLUMNS, ROWS)
    streams = pyte.Stream(whole), pyte.Stream(short)
    for data in (
        put(ROWS, 1, " " * COLUMNS),
        put(ROWS + 6, 1, "status: measuring"),
        put(2, COLUMNS - 1, "beyond"),
        "".join(put(row, 1, " " * COLUMNS) for row in range(1, ROWS + 1)),
    ):
        left = output.lean(data)
        streams[0].feed(data)
        streams[1].feed(left)
    assert short.display == whole.display


def test_a_wide_and_a_combining_character_do_not_make_up_for_each_other() -> None:
    pair = Pair()
    pair.send(put(1, 1, "模e\u0301 net"))
    assert "x\u0301" in pair.send(put(1, 1, "模x\u0301 net"))


_STYLES = st.sampled_from(["", RED, BOLD_RED, PAPER, "38;5;188;48;5;17", "2;7", "38;2;1;2;3;48;2;4;5;6"])
_TEXTS = st.one_of(
    st.text(alphabet="ab ⣿│—·", min_size=1, max_size=COLUMNS),
    st.sampled_from(["模型", "e\u0301", "🙂", "a模", "a\u00a0b"]),
)


@st.composite
def _pieces(draw: st.DrawFn) -> str:
    row, column = draw(st.integers(1, ROWS)), draw(st.integers(1, COLUMNS))
    text = draw(_TEXTS)
    wide = sum(2 if ord(character) > 0x3000 else 1 for character in text)
    if column + wide - 1 > COLUMNS:
        column = max(1, COLUMNS - wide + 1)
    piece = put(row, column, text, draw(_STYLES))
    ends = ["", "", "\x1b[?25l", "\x1b[2J", "\x1b[1;1H"]
    if row < ROWS:  # below the last row it would scroll; frames have no such line end
        ends.append("\n\x1b[1;1H")
    return piece + draw(st.sampled_from(ends))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(_pieces(), max_size=8).map("".join), max_size=6))
def test_whatever_is_written_the_terminal_shows_the_same(writes: list[str]) -> None:
    pair = Pair()
    for data in writes:
        pair.send(data)
