"""What the terminal can do, and texts made safe for it."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Literal

Charset = Literal["unicode", "ascii"]
"""Which characters may be drawn: `ascii` uses nothing above U+007E, `unicode` also braille, blocks and box drawing."""

SMALLEST = (20, 4)
"""Columns and rows below which no screen is drawn, only a line that says the size needed."""

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}


@dataclass(frozen=True, slots=True)
class Terminal:
    """What was found out about the terminal, once, at the start."""

    is_tty: bool
    """Whether a person can see the output and type: input, output and error stream are terminals."""
    dumb: bool
    """TERM is unset, empty or `dumb`: the cursor cannot be moved."""
    charset: Charset
    no_colour: bool
    over_ssh: bool
    columns: int
    rows: int

    @property
    def can_draw(self) -> bool:
        """Whether the interface can be shown at all."""
        return self.is_tty and not self.dumb

    @property
    def refresh_hz(self) -> float:
        """The most redraws a second: 4, over SSH 2."""
        return 2.0 if self.over_ssh else 4.0

    def why_not(self) -> str:
        """Why the interface cannot be shown, in a sentence; empty when it can."""
        if not self.is_tty:
            return "The interface needs a terminal for its input and its output."
        if self.dumb:
            return "The interface needs a terminal that can move its cursor; TERM names none."
        return ""


def look(
    environ: Mapping[str, str],
    streams: tuple[IO[str] | None, IO[str] | None, IO[str] | None],
    size: tuple[int, int],
    *,
    plain: bool = False,
) -> Terminal:
    """What the terminal behind `streams` (standard input, output, error) can do. `plain` asks for ASCII in any case."""
    output = streams[2] if streams[2] is not None else streams[1]
    encoding = getattr(output, "encoding", None) if output is not None else None
    return Terminal(
        is_tty=all(_is_tty(stream) for stream in streams),
        dumb=environ.get("TERM", "") in ("", "dumb", "unknown"),
        charset="ascii" if plain or _few_characters(environ) else charset_for(encoding, environ),
        no_colour=wants_no_colour(environ) or _monochrome(environ),
        over_ssh=bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY")),
        columns=size[0],
        rows=size[1],
    )


def wants_no_colour(environ: Mapping[str, str]) -> bool:
    """Whether NO_COLOR is set and not empty (no-color.org)."""
    return bool(environ.get("NO_COLOR"))


def _few_characters(environ: Mapping[str, str]) -> bool:
    """Whether TERM names a terminal whose font has no blocks and no braille: the Linux console, and the old ones."""
    return re.match(r"(linux|ansi|vt\d+|cons\d+|sun)(\W|$)", environ.get("TERM", "")) is not None


def _monochrome(environ: Mapping[str, str]) -> bool:
    """Whether TERM names a terminal that has no colours: the vt series up to vt420."""
    return re.match(r"vt\d+(\W|$)", environ.get("TERM", "")) is not None


def charset_for(encoding: str | None, environ: Mapping[str, str]) -> Charset:
    """`unicode` where both the stream and the locale say UTF-8.

    Python writes UTF-8 under LC_ALL=C (PEP 538, 540) although the terminal may not read it, so the locale's own
    variables count as well: the first that is set of LC_ALL, LC_CTYPE, LANG. With none set, the stream decides.
    """
    if not _is_utf8(encoding):
        return "ascii"
    locale = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), None)
    if locale is None:
        return "unicode"
    coding = locale.partition("@")[0].rpartition(".")[2]  # macOS sets LC_CTYPE to "UTF-8" alone
    return "unicode" if _is_utf8(coding) else "ascii"


def safe_text(
    text: str, charset: Charset = "unicode", limit: int | None = None, *, lines: bool = False
) -> str:
    """The text as one that cannot steer the terminal: control characters become visible signs.

    Control pictures stand for C0 and DEL, `<U+009B>` and the like for C1, for characters that reorder or hide text
    and for lone surrogates. In ASCII everything else above U+007E becomes `?`. A tab becomes a space. With `lines`,
    newlines stay. A text longer than `limit` characters is cut, and ends in an ellipsis.
    """
    shown = "".join(_safe_character(character, charset, lines=lines) for character in text)
    if limit is None or len(shown) <= limit:
        return shown
    ellipsis = "…" if charset == "unicode" else "..."
    return shown[: max(0, limit - len(ellipsis))] + ellipsis[:limit]


def _safe_character(character: str, charset: Charset, *, lines: bool) -> str:
    code = ord(character)
    if character == "\t":
        return " "
    if character == "\n" and lines:
        return character
    if code in _PICTURES:
        return _PICTURES[code] if charset == "unicode" else f"^{chr(code ^ 0x40)}"
    if unicodedata.category(character) in ("Cc", "Cs", "Co", "Zl", "Zp") or _steers_direction(code):
        return f"<U+{code:04X}>"
    if charset == "ascii" and code > 0x7E:
        return "?"
    return character


def _steers_direction(code: int) -> bool:
    """Bidirectional controls, which can show a text as another one, and the byte order mark."""
    return code in (0x061C, 0x200E, 0x200F, 0xFEFF) or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069


def _is_tty(stream: IO[str] | None) -> bool:
    if stream is None:
        return False
    try:
        return stream.isatty()
    except ValueError:  # a closed stream
        return False


def _is_utf8(encoding: str | None) -> bool:
    if not encoding:
        return False
    try:
        return codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        return False
