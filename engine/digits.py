"""How many digits of a figure its interval supports, pure: what the tables show and the advice quotes is rounded alike."""

from __future__ import annotations

import math

MOST_DIGITS = 5
"""Significant digits shown at the most: no timing here is known better than one part in ten thousand."""
WITHOUT_INTERVAL = 3
"""Significant digits of a figure that has no interval."""


def rounded(value: float, half: float | None) -> str:
    """The value with the digits that an interval of this half width supports, e.g. "20,801" or "6,140".

    The half width decides the last digit, by the rule of the Particle Data Group (Review of Particle Physics,
    introduction, "Rounding"): its first two digits count up to 35, its first alone above that. Without an interval
    three significant digits.
    """
    return to_place(value, place(value, half))


def place(value: float, half: float | None) -> int:
    """The power of ten of the last digit to show."""
    if value == 0 or not math.isfinite(value):
        return 0
    first = _exponent(value)
    if half is None:
        return first - WITHOUT_INTERVAL + 1
    finest = first - MOST_DIGITS + 1
    if half <= 0:
        return finest
    leading = half / 10.0 ** _exponent(half)
    supported = _exponent(half) - (1 if leading < 3.55 else 0)
    return min(max(supported, finest), first)


def to_place(value: float, last: int) -> str:
    """The value rounded at a power of ten."""
    if last <= 0:
        return f"{value:,.{-last}f}"
    unit = 10**last
    return f"{round(value / unit) * unit:,d}"


def _exponent(value: float) -> int:
    # By way of the printed form: log10 of 0.001 or 1000 may land a hair on the wrong side.
    return int(f"{abs(value):.3e}".partition("e")[2])
