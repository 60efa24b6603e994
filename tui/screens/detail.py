"""Everything known of one batch size, as text: percentiles with the calls behind them, latencies, memory, doubts, errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from engine import events
from engine.results import Measurement
from tui import formats
from tui.terminal import Charset, safe_text
from tui.theming import Palette
from tui.widgets.histogram import histogram

CALLS_NEEDED = {"p50": 8, "p90": 29, "p95": 59, "p99": 299}
"""Calls below which a percentile is not given; the same figures as in `engine.stats`, which a test holds together."""

STATE_SENTENCES = {
    "stable": "The interval is as narrow as asked for.",
    "noisy": "The time was up before the interval was narrow: it is shown as wide as it is.",
    "short": "Too few blocks for an interval; none is invented.",
    "oom": "It did not fit in memory.",
    "error": "The model raised an error.",
    "skipped": "Not tried.",
    "cancelled": "Cancelled before it was settled.",
}


@dataclass(frozen=True, slots=True)
class Detail:
    """The pane's two parts: what is measured, and how the calls were spread with what is doubtful about it."""

    figures: Text
    spread: Text


def detail_of(
    point: events.Point,
    measurement: Measurement | None,
    unit: str,
    width: int,
    palette: Palette,
    charset: Charset = "unicode",
) -> Detail:
    """Both parts as texts; `width` columns for the histogram."""
    figures = Text(overflow="fold")
    state = point.state if point.calls or point.state != "measuring" else "waiting"
    figures.append(f"batch {point.batch_size:,}  ", "bold")
    figures.append(state, palette.state(point.state))
    if point.state in STATE_SENTENCES:
        figures.append(f"\n{STATE_SENTENCES[point.state]}", palette.dim)
    if point.reason:
        figures.append(f"\n{safe_text(point.reason, charset, 200)}", palette.dim)
    if point.error is not None:
        figures.append(f"\n\n{safe_text(point.error.title, charset, 200)}\n", palette.error)
        figures.append(safe_text(point.error.message, charset, 2000, lines=True))
    rows = _figures(point, unit)
    if charset == "ascii":
        rows = [(name, formats.to_ascii(figure), formats.to_ascii(note)) for name, figure, note in rows]
    if rows:
        figures.append("\n\n")
        _columns(figures, rows, palette)
    spread = Text(overflow="fold")
    times = [time for block in measurement.blocks for time in block.call_ms] if measurement else []
    if len(times) >= CALLS_NEEDED["p50"]:
        spread.append("latency of the calls, ms\n", "bold")
        spread.append_text(histogram(times, width=max(16, width), palette=palette, charset=charset))
    for warned in point.warnings:
        spread.append("\n\n" if spread else "")
        spread.append(safe_text(formats.sentences(warned.text), charset, 400), palette.noisy)
        if warned.remedy:
            spread.append(f" {safe_text(formats.sentences(warned.remedy), charset, 400)}")
    return Detail(figures, spread)


def _figures(point: events.Point, unit: str) -> list[tuple[str, str, str]]:
    """Name, figure and remark of what was measured."""
    rows: list[tuple[str, str, str]] = []
    fresh = point.confirmed
    counts = point.counts_instead is not None
    if point.throughput is not None:
        ends = (point.throughput_low, point.throughput_high)
        note = "in the run" if counts else formats.span(*ends) or "no interval"
        rows.append((unit, formats.throughput(point.throughput, *ends), note))
    if fresh is not None:
        ends = (fresh.low, fresh.high)
        figure = formats.throughput(fresh.throughput, *ends)
        rows.append(("fresh process", figure, "this figure counts" if counts else "agrees"))
        if counts and (span := formats.span(*ends)):
            rows.append(("", "", span))
        if fresh.reason:
            rows.append(("", "", safe_text(fresh.reason, limit=200)))
    if point.calls:
        grouped = f", timed {point.grouped} at once" if point.grouped > 1 else ""
        for name, needed in CALLS_NEEDED.items():
            value: float | None = getattr(point.latency_ms, name)
            note = "" if value is not None else f"needs {needed:,} calls"
            rows.append((f"{name} ms", formats.ms(value), note))
        rows.append(("calls", f"{point.calls:,}", f"in {point.blocks:,} blocks{grouped}"))
    if point.ms_per_item is not None:
        rows.append((f"ms/{unit.partition('/')[0].removesuffix('s')}", formats.ms(point.ms_per_item), ""))
    if point.cold_ms is not None:
        rows.append(("cold call ms", formats.ms(point.cold_ms), "in no other figure"))
    if point.memory_mb is not None:
        rows.append(("memory MB", formats.memory_mb(point.memory_mb), ""))
    if point.faults_per_call is not None:
        note = "a call, in the run" if counts else "a call"
        rows.append(("page faults", formats.count(point.faults_per_call), note))
    if fresh is not None and counts and fresh.faults_per_call is not None:
        rows.append(("fresh process", formats.count(fresh.faults_per_call), "faults a call"))
    if point.effective_batch_size not in (None, point.batch_size):
        rows.append(("processed", f"{point.effective_batch_size:,}", f"of {point.batch_size:,} asked"))
    if point.kept_from is not None:
        rows.append(("kept from run", safe_text(point.kept_from, limit=20), ""))
    return rows


def _columns(text: Text, rows: Sequence[tuple[str, str, str]], palette: Palette) -> None:
    first = max(len(name) for name, _, _ in rows)
    second = max(len(figure) for _, figure, _ in rows)
    for number, (name, figure, note) in enumerate(rows):
        if number:
            text.append("\n")
        text.append(f"{name:<{first}} ", palette.label)
        text.append(f"{figure:>{second}}", "bold")
        if note:
            text.append(f"  {note}", palette.dim)


class DetailPane(VerticalScroll, can_focus=False):
    """Shows one row; draws only when it changed."""

    def __init__(self) -> None:
        super().__init__(id="detail")
        self._detail: Detail | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="detail-figures")
        yield Static(id="detail-spread")

    @property
    def histogram_width(self) -> int:
        """Columns that the second part has."""
        return self.query_one("#detail-spread").content_size.width

    def show(self, detail: Detail) -> None:
        if detail != self._detail:
            before, self._detail = self._detail, detail
            for place in ("figures", "spread"):
                old, new = (getattr(one, place) if one is not None else Text() for one in (before, detail))
                part = self.query_one(f"#detail-{place}", Static)
                # Figures that change in place move nothing else: laying the screen out costs more than drawing them.
                part.update(new, layout=not _as_high(old, new, part.content_size.width))


def _as_high(one: Text, other: Text, width: int) -> bool:
    """Whether both surely take as many rows: no line of either is folded, and there are as many."""
    lines, others = one.plain.split("\n"), other.plain.split("\n")
    return len(lines) == len(others) and all(cell_len(line) <= width for line in (*lines, *others))
