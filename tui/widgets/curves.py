"""What the chart draws, as frozen values, and the characters that it draws them with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from engine.results import State
from tui.terminal import Charset


class CurvePoint(msgspec.Struct, frozen=True, gc=False):
    """One batch size on the chart. What is None or not finite is not drawn.

    A struct: thousands are made and compared at each look at a long run.
    """

    batch_size: int
    throughput: float | None = None
    low: float | None = None
    high: float | None = None
    latency_ms: float | None = None
    state: State = "stable"


@dataclass(frozen=True, slots=True)
class Curves:
    """Everything that the chart shows."""

    points: tuple[CurvePoint, ...] = ()
    previous: tuple[CurvePoint, ...] = ()
    """The run before, drawn dim behind: its throughput."""
    peak: int | None = None
    certain: bool = True
    """Whether the peak is one; else its size merely leads."""
    knee: int | None = None
    limit_ms: float | None = None
    unit: str = "images/s"
    latency_label: str = "p50 ms"
    empty: str = "no figures yet"


@dataclass(frozen=True, slots=True)
class Marks:
    """The characters that a curve is drawn with."""

    throughput: str
    latency: str
    previous: str
    limit: str
    settled: str
    unsettled: str
    latency_point: str
    failed: str
    bar: str
    top: str
    bottom: str
    throughput_dots: tuple[int, int]
    """Dots per cell, across and up, of the throughput's character; then of the latency's."""
    latency_dots: tuple[int, int]
    throughput_sample: str
    latency_sample: str
    previous_sample: str
    limit_sample: str


MARKS: dict[Charset, Marks] = {
    "unicode": Marks(
        throughput="hd",
        latency="braille",
        previous="•",
        limit="╌",
        settled="●",
        unsettled="○",
        latency_point="◇",
        failed="×",
        bar="│",
        top="┬",
        bottom="┴",
        throughput_dots=(2, 2),
        latency_dots=(2, 4),
        throughput_sample="▄▀",
        latency_sample="⠤⠒",
        previous_sample="• •",
        limit_sample="╌ ╌",
    ),
    "ascii": Marks(
        throughput="*",
        latency="-",
        previous=".",
        limit="~",
        settled="@",
        unsettled="O",
        latency_point="o",
        failed="!",
        bar="|",
        top="|",
        bottom="|",
        throughput_dots=(1, 1),
        latency_dots=(1, 1),
        throughput_sample="*@*",
        latency_sample="-o-",
        previous_sample=". .",
        limit_sample="~ ~",
    ),
}


_LEAST, _MOST = 1e-6, 1e15
"""Beyond these no figure is one that was measured, and no label would fit."""


def drawable(curves: Curves) -> Curves:
    """The curves in the order of the sizes, without what no axis can show: plotext raises on what is not finite."""

    def sound(value: float | None) -> float | None:
        if value is None or not math.isfinite(value) or not 0 <= value <= _MOST:
            return None
        return value if value >= _LEAST else 0.0

    def cleaned(points: Sequence[CurvePoint]) -> tuple[CurvePoint, ...]:
        by_size = {
            point.batch_size: CurvePoint(
                point.batch_size,
                sound(point.throughput),
                sound(max(point.low, 0.0) if point.low is not None else None),
                sound(point.high),
                sound(point.latency_ms),
                point.state,
            )
            for point in points
            if point.batch_size > 0
        }
        return tuple(by_size[size] for size in sorted(by_size))

    limit = sound(curves.limit_ms)
    return replace(
        curves, points=cleaned(curves.points), previous=cleaned(curves.previous), limit_ms=limit or None
    )
