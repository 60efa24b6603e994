"""A small histogram of latencies as text, a line per bin with round edges. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from rich.text import Text

from tui import formats
from tui.terminal import Charset
from tui.theming import Palette
from tui.widgets.bars import bar
from tui.widgets.chart_scale import decimals, round_step

_NOTHING = 1e-9
"""Times under this many ms are no times of any clock; numbers this small would be divided to 0."""
_TAIL_FROM = 2.0
"""A tail is gathered in one bin when it reaches this many times further than the other 95 % of the calls are spread:
with even bins over all of it, one slow call would hide how the others differ."""


def histogram(
    times_ms: Sequence[float], width: int, palette: Palette, charset: Charset = "unicode", bins: int = 8
) -> Text:
    """How many of the calls took how long, in ms: each line says where its bin begins, and how many fell in it.

    At most `bins` lines or one more, and one that tells the number of calls and the longest. What is not finite or negative
    is left out.
    """
    times = sorted(
        time if time >= _NOTHING else 0.0 for time in times_ms if math.isfinite(time) and time >= 0
    )
    if not times:
        return Text("no calls timed", style=palette.dim)
    edges, step, tail = bin_edges(times, bins)
    # The times are in order: looking for each edge among them is less work than for each of thousands among the edges.
    begins = [0, *(bisect_left(times, edge) for edge in edges[1:]), len(times)]
    counts = [end - begin for begin, end in pairwise(begins)]
    labels = [f"{edge:.{decimals(step)}f}" for edge in edges]
    if tail:
        labels[-1] += "+"
    figures = [f"{count:,}" for count in counts]
    before, after = max(map(len, labels)), max(map(len, figures))
    columns = width - before - after - 3
    text = Text(no_wrap=True, end="")
    for label, count, figure in zip(labels, counts, figures, strict=True):
        drawn = bar(count / max(counts), columns, charset, visible=True)
        text.append(f"{label:>{before}} ", palette.label)
        text.append("|" if charset == "ascii" else "│", palette.axis)
        text.append(drawn, palette.latency)
        text.append(f" {figure}\n", palette.dim)
    calls = f"{len(times):,} call{'s' if len(times) != 1 else ''}"
    return text.append(f"{calls}, longest {formats.ms(times[-1])} ms"[: max(width, 0)], palette.label)


def bin_edges(times: Sequence[float], bins: int) -> tuple[list[float], float, bool]:
    """Where the bins for rising times begin, how wide they are, and whether the last gathers the tail.

    The edges are round numbers; the first is at or under the shortest time, the last at or under the longest.
    """
    shortest, longest = times[0], times[-1]
    usual = times[math.ceil(0.95 * len(times)) - 1]
    tail = longest - usual > _TAIL_FROM * (usual - shortest) > longest * 1e-6
    top = usual if tail else longest
    if top - shortest <= longest * 1e-6:
        return [shortest], round_step(shortest / 100) if shortest > 0 else 1.0, False
    step = round_step((top - shortest) / (bins - 1 if tail else bins))
    first, last = math.floor(shortest / step + 1e-9), math.floor(top / step + 1e-9)
    # Twelve digits: 27 * 0.2 is a hair over 5.4, and a call of 5.4 ms belongs in the bin that says 5.4.
    edges = [float(f"{number * step:.12g}") for number in range(first, last + 1 + tail)]
    return [min(edges[0], shortest), *edges[1:]], step, tail
