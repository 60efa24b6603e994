"""A bar of a length that need not be whole columns. Pure."""

from __future__ import annotations

import math

from tui.terminal import Charset

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, columns: int, charset: Charset, *, visible: bool = False) -> str:
    """A bar over a share, 0 to 1, of so many columns, without blanks after it.

    Eighths of a column where the characters allow it. It is full only at a share of 1, and with `visible` a share above
    0 shows at least a sliver.
    """
    share = 0.0 if math.isnan(share) else min(max(share, 0.0), 1.0)
    if columns <= 0 or share == 0:
        return ""
    parts = 8 if charset == "unicode" else 1
    length = math.floor(share * columns * parts + 1e-9)
    if share < 1:
        length = min(length, columns * parts - 1)
    if visible:
        length = max(length, 1)
    if charset == "ascii":
        return "#" * length
    return "█" * (length // 8) + _EIGHTHS[length % 8].strip()
