"""What a terminal can do, and texts that cannot steer it."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.terminal import charset_for, look, safe_text, wants_no_colour

XTERM = {"TERM": "xterm-256color", "LANG": "en_US.UTF-8"}


class Stream(io.StringIO):
    """A stream with an encoding, on a terminal or not."""

    def __init__(self, encoding: str | None, tty: bool) -> None:
        super().__init__()
        self._encoding = encoding
        self._tty = tty

    @property
    def encoding(self) -> str | None:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        if self.closed:
            raise ValueError
        return self._tty


def streams(
    encoding: str = "utf-8", tty: tuple[bool, bool, bool] = (True, True, True)
) -> tuple[Stream, Stream, Stream]:
    return (Stream(encoding, tty[0]), Stream(encoding, tty[1]), Stream(encoding, tty[2]))


def test_a_usual_terminal_can_draw_everything() -> None:
    terminal = look(XTERM, streams(), (80, 24))
    assert terminal.can_draw
    assert terminal.why_not() == ""
    assert terminal.charset == "unicode"
    assert not terminal.no_colour
    assert not terminal.over_ssh
    assert terminal.refresh_hz == 4.0
    assert (terminal.columns, terminal.rows) == (80, 24)


def test_over_ssh_it_draws_half_as_often() -> None:
    assert look(XTERM | {"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}, streams(), (80, 24)).refresh_hz == 2.0


@pytest.mark.parametrize("tty", [(False, True, True), (True, False, True), (True, True, False)])
def test_a_pipe_or_a_file_at_any_end_is_no_terminal(tty: tuple[bool, bool, bool]) -> None:
    terminal = look(XTERM, streams(tty=tty), (80, 24))
    assert not terminal.can_draw
    assert "needs a terminal" in terminal.why_not()


def test_closed_and_missing_streams_are_no_terminal() -> None:
    closed = Stream("utf-8", True)
    closed.close()
    assert not look(XTERM, (closed, *streams()[1:]), (80, 24)).can_draw
    assert not look(XTERM, (None, None, None), (80, 24)).can_draw


@pytest.mark.parametrize("term", ["dumb", "", "unknown"])
def test_a_terminal_that_cannot_move_its_cursor_is_told(term: str) -> None:
    terminal = look(XTERM | {"TERM": term}, streams(), (80, 24))
    assert not terminal.can_draw
    assert "TERM" in terminal.why_not()
    assert not look({"LANG": "C.UTF-8"}, streams(), (80, 24)).can_draw


@pytest.mark.parametrize(
    ("encoding", "environ", "charset"),
    [
        ("utf-8", {"LANG": "en_US.UTF-8"}, "unicode"),
        ("UTF8", {"LC_ALL": "C.utf8"}, "unicode"),
        ("utf-8", {"LC_CTYPE": "UTF-8", "LANG": "C"}, "unicode"),  # what macOS sets
        ("utf-8", {}, "unicode"),
        ("utf-8", {"LC_ALL": "", "LANG": "de_DE.UTF-8@euro"}, "unicode"),
        ("utf-8", {"LC_ALL": "C", "LANG": "en_US.UTF-8"}, "ascii"),
        ("utf-8", {"LC_ALL": "POSIX"}, "ascii"),
        ("utf-8", {"LANG": "de_DE.ISO-8859-1"}, "ascii"),
        ("latin-1", {"LANG": "en_US.UTF-8"}, "ascii"),
        ("ascii", {}, "ascii"),
        ("no-such-encoding", {}, "ascii"),
        (None, {}, "ascii"),
    ],
)
def test_characters_are_those_that_stream_and_locale_can_show(
    encoding: str | None, environ: dict[str, str], charset: str
) -> None:

    assert charset_for(encoding, environ) == charset


def test_plain_is_ascii_wherever_it_runs() -> None:
    assert look(XTERM, streams(), (80, 24), plain=True).charset == "ascii"


def test_no_color_counts_when_it_is_not_empty() -> None:
    assert wants_no_colour({"NO_COLOR": "1"})
    assert wants_no_colour({"NO_COLOR": "0"})
    assert not wants_no_colour({"NO_COLOR": ""})
    assert not wants_no_colour({})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[/red] [1, 3, 224] [", "[/red] [1, 3, 224] ["),
        ("a\x1b[2Jb", "a␛[2Jb"),
        ("bell\x07 del\x7f nul\x00", "bell␇ del␡ nul␀"),
        ("c1 \x9b31m", "c1 <U+009B>31m"),
        ("one\ttwo", "one two"),
        ("one\ntwo\r", "one␊two␍"),
        ("right \u202eto left", "right <U+202E>to left"),
        ("lone \ud800", "lone <U+D800>"),
        ("画像 🎉 é", "画像 🎉 é"),
    ],
)
def test_control_characters_become_visible_and_the_rest_stays(text: str, shown: str) -> None:
    assert safe_text(text) == shown


def test_in_ascii_nothing_else_is_left() -> None:
    assert safe_text("a\x1b[2J é 画", "ascii") == "a^[[2J ? ?"


def test_lines_stay_where_they_are_wanted() -> None:
    assert safe_text("one\ntwo", lines=True) == "one\ntwo"


def test_long_texts_are_cut_and_say_so() -> None:
    assert safe_text("x" * 300, limit=10) == "xxxxxxxxx…"
    assert safe_text("x" * 300, "ascii", limit=10) == "xxxxxxx..."
    assert safe_text("x" * 10, limit=10) == "x" * 10
    assert safe_text("xx", "ascii", limit=1) == "."
    assert safe_text("xx", limit=0) == ""


@given(text=st.text(), limit=st.one_of(st.none(), st.integers(0, 50)))
def test_no_text_steers_the_terminal(text: str, limit: int | None) -> None:
    shown = safe_text(text, limit=limit)
    assert all(unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp") for character in shown)
    assert limit is None or len(shown) <= limit
    assert safe_text(text, "ascii", limit).isascii()
