"""How long a key takes until the terminal shows what it did."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable

from tests.pty.real_terminal import PATIENCE_S, RealTerminal

UP, DOWN, PAGE_DOWN, HOME, END = "\x1b[A", "\x1b[B", "\x1b[6~", "\x1b[H", "\x1b[F"
POLL_S = 0.002


def size_under_the_cursor(terminal: RealTerminal) -> str | None:
    """The batch size in the row that has a background of its own; None while there is none."""
    with terminal._lock:
        screen = terminal.screen
        rows = [
            Counter(screen.buffer[row][column].bg for column in range(screen.columns)).most_common(1)[0][0]
            for row in range(screen.lines)
        ]
        alone = [row for row, ground in enumerate(rows) if rows.count(ground) == 1]
        found = re.search(r"[\d,]+", screen.display[alone[0]]) if alone else None
    return found[0] if found else None


def until(true: Callable[[], object], what: str, terminal: RealTerminal) -> float:
    """Seconds until the condition holds."""
    begun = time.perf_counter()
    while not true():
        if time.perf_counter() - begun > PATIENCE_S:
            raise TimeoutError(f"never: {what}; the screen:\n{terminal.text}")
        time.sleep(POLL_S)
    return time.perf_counter() - begun


def moves_cursor(terminal: RealTerminal, key: str) -> float:
    """Seconds from the key until another row is under the cursor."""
    before = size_under_the_cursor(terminal)
    terminal.send(key)
    return until(
        lambda: size_under_the_cursor(terminal) not in (before, None), f"the cursor leaves {before}", terminal
    )


def shows(terminal: RealTerminal, key: str, words: str) -> float:
    """Seconds from the key until the words are on the screen."""
    terminal.send(key)
    return until(lambda: words in terminal.text, repr(words), terminal)


def hides(terminal: RealTerminal, key: str, words: str) -> float:
    """Seconds from the key until the words are gone."""
    terminal.send(key)
    return until(lambda: words not in terminal.text, f"{words!r} gone", terminal)
