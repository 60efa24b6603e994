"""Scales of the chart, pure: axis ends, ticks and their labels, thinning of dense curves."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

_MOST_STEPS = 6
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_HEADROOM = 1.08
"""The top of an axis above its highest value, so that a label fits over the peak."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its ends, and where its labels stand."""

    low: float
    high: float
    ticks: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()

    def dot(self, value: float, dots: int) -> int:
        """The dot, of `dots` along the axis, in which plotext puts a value; the first and last for what lies outside."""
        place = math.floor(round(0.5 + (dots - 1) * (value - self.low) / (self.high - self.low), 8))
        return min(max(place, 0), dots - 1)

    def value(self, dot: int, dots: int) -> float:
        """A value that falls on this dot."""
        return self.low + (self.high - self.low) * dot / max(1, dots - 1)

    def cell(self, value: float, cells: int, fine: int = 1) -> int:
        """The cell, of `cells` along the axis, that a value falls in.

        `fine` is the number of dots that a cell has along the axis (4 rows of dots in a braille character).
        """
        return self.dot(value, cells * fine) // fine


def value_axis(highest: float, rows: int) -> Axis:
    """An axis from 0 to a little over `highest`, with a round label about every third row, few in all."""
    highest = highest if highest > 0 else 1.0
    top = highest * _HEADROOM
    step = round_step(highest / min(max(1, (rows + 2) // 3), _MOST_STEPS))
    count = math.floor(top / step + 1e-9)
    if count == 0:
        step, count = _floor_to_digit(highest), 1
    ticks = tuple(step * index for index in range(count + 1))
    return Axis(0.0, top, ticks, tuple(compact(tick, step) for tick in ticks))


def batch_axis(batch_sizes: Sequence[int], first: Sequence[int], columns: int) -> Axis:
    """The axis of log2(batch size), labelled at sizes that were measured, those of `first` before others.

    Powers of two come before other sizes. A label that would touch another is left out.
    """
    low, high = math.log2(min(batch_sizes)), math.log2(max(batch_sizes))
    margin = 0.04 * (high - low) if high > low else 1.0
    axis = Axis(low - margin, high + margin)
    wanted = [
        *first,
        batch_sizes[-1],
        batch_sizes[0],
        *(size for size in batch_sizes if size & (size - 1) == 0),
        *batch_sizes,
    ]
    taken = [False] * columns
    chosen: list[int] = []
    for size in dict.fromkeys(wanted):
        label = str(size)
        middle = axis.cell(math.log2(size), columns)
        start = min(max(middle - len(label) // 2, 0), max(columns - len(label), 0))
        around = slice(max(start - 1, 0), start + len(label) + 1)
        if len(label) <= columns and not any(taken[around]):
            taken[around] = [True] * len(taken[around])
            chosen.append(size)
    chosen.sort()
    return Axis(
        axis.low,
        axis.high,
        tuple(math.log2(size) for size in chosen),
        tuple(str(size) for size in chosen),
    )


def compact(value: float, step: float) -> str:
    """A tick's label: 0, 0.25, 400, 21k, 1.5M; as many decimals as the step needs."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size and (value >= 10_000 or step >= 500):
            return plain(value / size, step / size) + letter
    return plain(value, step)


def thin(dots: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of each column of dots the first, the lowest, the highest and the last, in order: at most four a column.

    The line through them sets the same dots as the line through all, which are ordered by column.
    """
    kept: list[tuple[int, int]] = []
    for _, group in groupby(dots, key=itemgetter(0)):
        column = list(group)
        heights = [height for _, height in column]
        places = {0, heights.index(min(heights)), heights.index(max(heights)), len(column) - 1}
        kept += [column[place] for place in sorted(places) if kept[-1:] != [column[place]]]
    return kept


def between(
    points: Sequence[tuple[float, float]], axis: Axis, cells: int, every: int
) -> list[tuple[float, float]]:
    """Points on the straight lines between `points`, one for every `every` cells: a dotted curve."""
    dots: list[tuple[float, float]] = []
    xs = [x for x, _ in points]
    for cell in range(0, cells, every):
        x = axis.value(cell, cells)
        after = max(bisect_left(xs, x), 1)
        if after < len(xs) and xs[0] <= x:
            (x0, y0), (x1, y1) = points[after - 1], points[after]
            dots.append((x, y0 + (y1 - y0) * (x - x0) / (x1 - x0)))
    return dots


def round_step(least: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is not under `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((step * power for step in _STEPS if step * power >= least * (1 - 1e-9)), 10 * power)


def _floor_to_digit(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return math.floor(value / power) * power


def plain(value: float, step: float) -> str:
    """A number with as many decimals as multiples of the step need, without zeros at its end."""
    text = f"{value:.{decimals(step)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def decimals(step: float) -> int:
    """The decimals that multiples of a step need, 6 at the most."""
    count = 0
    while count < 6 and abs(step * 10**count - round(step * 10**count)) > 1e-6:
        count += 1
    return count
