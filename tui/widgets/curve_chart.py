"""The chart: throughput and latency over log2 batch size, drawn by plotext as a pure function of its curves.

plotext's figures cannot be built twice (a build writes back into the figure), so every picture gets a fresh one. Its
colours are used as labels only: each cell's colour number names a role, and the palette says how that role looks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from engine.results import State
from tui.terminal import SMALLEST, Charset
from tui.theming import Palette
from tui.widgets.cells import Cell, length, narrow, put, runs, write_on_blank
from tui.widgets.chart_scale import Axis, batch_axis, between, thin, value_axis
from tui.widgets.curves import MARKS, CurvePoint, Curves, drawable

if TYPE_CHECKING:
    from textual_plotext.plot import Plot

_ROLES = (
    "axis",
    "label",
    "throughput",
    "latency",
    "previous",
    "peak",
    "knee",
    "limit",
    "oom",
    "error",
    "skipped",
)
_CODE = re.compile(r"\x1b\[([0-9;]*)m")
_FAILED: tuple[State, ...] = ("oom", "error", "skipped")


_AS_ASCII = str.maketrans("┤├│┼", "++|+")


def new_figure(width: int, height: int) -> Plot:
    """A figure of this size. plotext is imported here and not before: it would hold up the first frame."""
    from textual_plotext.plot import Plot

    figure = Plot()
    # plotsize() cuts the size to the terminal's, which is 80x23 without one; the widget of textual_plotext uses this too.
    figure._set_size(width, height)  # noqa: SLF001
    figure.theme("clear")
    return figure


def render(curves: Curves, width: int, height: int, palette: Palette, charset: Charset = "unicode") -> Text:
    """The chart as `height` lines of `width` columns; a line of text where it does not fit."""
    if width <= 0 or height <= 0:
        return Text()
    if width < SMALLEST[0] or height < SMALLEST[1]:
        notice = f"the chart needs {SMALLEST[0]}x{SMALLEST[1]}"[:width]
        return Text(notice, style=palette.dim, no_wrap=True)
    rows = _Picture(drawable(curves), width, height, charset).rows()
    text = Text(no_wrap=True, end="")
    for number, row in enumerate(rows):
        if number:
            text.append("\n")
        for run, role in runs(row):
            text.append(run, _style(palette, role))
    return text


class _Picture:
    """One drawing: the axes chosen, the figure built, the labels put where they hide nothing."""

    def __init__(self, curves: Curves, width: int, height: int, charset: Charset) -> None:
        self.curves = curves
        self.width = width
        self.height = height
        self.charset = charset
        self.marks = MARKS[charset]
        self.canvas_rows = height - 2
        known = [point for point in curves.points if point.throughput is not None]
        heights = [p.throughput or 0.0 for p in (*known, *curves.previous)] + [
            high for p in known if (high := p.high) is not None and high <= 2 * (p.throughput or 0.0)
        ]
        waits = [p.latency_ms for p in curves.points if p.latency_ms is not None]
        self.known = known
        self.left = value_axis(max(heights), self.canvas_rows) if heights else None
        self.right = value_axis(self._latency_top(waits), self.canvas_rows) if waits else None
        if width >= 40:
            self.left, self.right = _spaced(self.left, 0, 1), _spaced(self.right, 1, 0)
        self.start = (max(map(len, self.left.labels)) if self.left else 0) + 1
        self.columns = width - self.start - ((max(map(len, self.right.labels)) + 1) if self.right else 0)
        sizes = sorted({p.batch_size for p in (*curves.points, *curves.previous)})
        first = [size for size in (curves.peak, curves.knee) if size in sizes]
        self.bottom = batch_axis(sizes, [s for s in first if s is not None], self.columns) if sizes else None

    def rows(self) -> list[list[Cell]]:
        if self.bottom is None or self.left is None:
            return self._nothing()
        grid = self._draw(self.bottom, self.left)
        self._mark_points(grid, self.bottom, self.left)
        unplaced = [
            *self._label_failures(grid, self.bottom),
            *self._label_marks(grid, self.bottom, self.left),
        ]
        if self.charset == "ascii":
            grid = [[(character.translate(_AS_ASCII), role) for character, role in row] for row in grid]
        write_on_blank(grid[-1], 0, "batch", "label", gap=1)
        return [self._header(unplaced), *grid]

    def _latency_top(self, waits: Sequence[float]) -> float:
        """The longest latency, or the limit when it is not much longer, so that its line can be drawn."""
        longest = max(waits)
        limit = self.curves.limit_ms
        return limit if limit is not None and longest < limit <= 2 * longest else longest

    def _draw(self, bottom: Axis, left: Axis) -> list[list[Cell]]:
        figure = new_figure(self.width, self.height - 1)
        figure.xaxes(False, False)
        figure.yaxes(True, self.right is not None)
        figure.xlim(bottom.low, bottom.high)
        figure.ylim(left.low, left.high, yside=1)
        figure.xticks(list(bottom.ticks), list(bottom.labels))
        figure.yticks(list(left.ticks), list(left.labels), yside=1)
        # Something must be on an axis for plotext to draw it.
        figure.scatter([bottom.low], [left.low], marker=" ", color=_number("axis"), yside="left")
        self._draw_previous(figure, bottom)
        if self.right is not None:
            figure.ylim(self.right.low, self.right.high, yside=2)
            figure.yticks(list(self.right.ticks), list(self.right.labels), yside=2)
            self._draw_limit(figure, bottom, self.right)
            self._draw_latency(figure, bottom)
        self._draw_throughput(figure, bottom)
        return [_cells(line, self.width) for line in figure.build().splitlines()[: self.height - 1]]

    def _draw_limit(self, figure: Plot, bottom: Axis, right: Axis) -> None:
        limit = self.curves.limit_ms
        if limit is not None and limit <= right.high:
            across = [(bottom.low, limit), (bottom.high, limit)]
            dashes = between(across, bottom, self.columns, every=2)
            self._plot(figure, dashes, self.marks.limit, "limit", joined=False, side="right")

    def _draw_previous(self, figure: Plot, bottom: Axis) -> None:
        curve = _curve((p.batch_size, p.throughput) for p in self.curves.previous)
        if curve:
            dots = between(thin(curve, bottom, self.columns), bottom, self.columns, every=2) or curve
            self._plot(figure, dots, self.marks.previous, "previous", joined=False)

    def _draw_latency(self, figure: Plot, bottom: Axis) -> None:
        curve = _curve((p.batch_size, p.latency_ms) for p in self.curves.points)
        shown = thin(curve, bottom, self.columns)
        self._plot(figure, shown, self.marks.latency, "latency", joined=True, side="right")

    def _draw_throughput(self, figure: Plot, bottom: Axis) -> None:
        keep = [math.log2(size) for size in (self.curves.peak, self.curves.knee) if size is not None]
        curve = _curve((p.batch_size, p.throughput) for p in self.known)
        shown = thin(curve, bottom, self.columns, keep)
        self._plot(figure, shown, self.marks.throughput, "throughput", joined=True)

    def _mark_points(self, grid: list[list[Cell]], bottom: Axis, left: Axis) -> None:
        """Intervals and a mark at each point, unless they stand so close that they would hide the curves."""
        if len(self.curves.points) * 3 > self.columns:
            return
        across, up = self.marks.latency_dots
        for point in self.curves.points:
            if self.right is not None and point.latency_ms is not None:
                column = self.start + bottom.cell(math.log2(point.batch_size), self.columns, across)
                grid[self._row(point.latency_ms, self.right, up)][column] = (
                    self.marks.latency_point,
                    "latency",
                )
        for point in self.known:
            self._mark_throughput(grid, point, bottom, left)

    def _mark_throughput(self, grid: list[list[Cell]], point: CurvePoint, bottom: Axis, left: Axis) -> None:
        across, up = self.marks.throughput_dots
        column = self.start + bottom.cell(math.log2(point.batch_size), self.columns, across)
        if point.low is not None and point.high is not None:
            top, floor = self._row(point.high, left, up), self._row(point.low, left, up)
            for row in range(top, floor + 1) if floor > top else ():
                ended = row == top and point.high <= left.high
                character = self.marks.top if ended else self.marks.bottom if row == floor else self.marks.bar
                grid[row][column] = (character, "throughput")
        row = self._row(point.throughput or 0.0, left, up)
        grid[row][column] = (self._mark_of(point.state), "throughput")

    def _mark_of(self, state: State) -> str:
        return self.marks.settled if state == "stable" else self.marks.unsettled

    def _row(self, value: float, axis: Axis, dots: int) -> int:
        """The row of the grid, from the top, in which a value lies."""
        return self.canvas_rows - 1 - axis.cell(value, self.canvas_rows, dots)

    def _plot(
        self,
        figure: Plot,
        curve: Sequence[tuple[float, float]],
        marker: str,
        role: str,
        *,
        joined: bool,
        side: str = "left",
    ) -> None:
        if curve:
            xs, ys = [x for x, _ in curve], [y for _, y in curve]
            draw = figure.plot if joined else figure.scatter
            draw(xs, ys, marker=marker, color=_number(role), yside=side)

    def _label_failures(self, grid: list[list[Cell]], bottom: Axis) -> list[tuple[str, str]]:
        """A cross over the tick of each size without figures, and the word once per kind; returns what found no room."""
        unplaced: list[tuple[str, str]] = []
        told: set[str] = set()
        floor = self.canvas_rows - 1
        for point in self.curves.points:
            if point.state not in _FAILED or point.throughput is not None:
                continue
            column = self.start + bottom.cell(math.log2(point.batch_size), self.columns)
            if grid[floor][column][0] == " ":
                grid[floor][column] = (self.marks.failed, point.state)
            if point.state not in told:
                told.add(point.state)
                if not self._label_near(grid, column, floor, point.state, point.state):
                    unplaced.append((f"{point.state} {point.batch_size}", point.state))
        return unplaced

    def _label_marks(self, grid: list[list[Cell]], bottom: Axis, left: Axis) -> list[tuple[str, str]]:
        by_size = {point.batch_size: point for point in self.known}
        wanted = [("peak", self.curves.peak), ("knee", self.curves.knee)]
        if self.curves.peak == self.curves.knee:
            wanted = [("peak", self.curves.peak)]
        unplaced: list[tuple[str, str]] = []
        for word, size in wanted:
            point = by_size.get(size) if size is not None else None
            if size is None or point is None:
                continue
            across, up = self.marks.throughput_dots
            column = self.start + bottom.cell(math.log2(size), self.columns, across)
            row = self._row(point.throughput or 0.0, left, up)
            grid[row][column] = (self._mark_of(point.state), word)
            if not self._label_near(grid, column, row, f"{word} {size}", word):
                unplaced.append((f"{word} {size}", word))
        return unplaced

    def _label_near(self, grid: list[list[Cell]], column: int, row: int, label: str, role: str) -> bool:
        """Write a label over, under or beside a cell where it covers nothing; False when there is no such place."""
        end = self.start + self.columns
        half = len(label) // 2
        for away in (-1, 1, -2, 2, -3, 3):
            if not 0 <= row + away < self.canvas_rows:
                continue
            for begin in (column - half, column - len(label) + 1, column, column + 1, column - len(label)):
                inside = self.start <= begin and begin + len(label) <= end
                if inside and write_on_blank(grid[row + away], begin, label, role, gap=1):
                    return True
        return False

    def _header(self, unplaced: Sequence[tuple[str, str]]) -> list[Cell]:
        """The names of both axes with a sample of each curve; between them what else is drawn."""
        marks = self.marks
        left = [(marks.throughput_sample, "throughput"), (f" {narrow(self.curves.unit)}", "label")]
        right = [(f"{narrow(self.curves.latency_label)} ", "label"), (marks.latency_sample, "latency")]
        row: list[Cell] = [(" ", "label")] * self.width
        used = put(row, 0, left)
        end = self.width
        if self.right is not None:
            end = self.width - length(right)
            if end <= used:
                return row
            put(row, end, right)
        middle = [[(label, role)] for label, role in unplaced]
        if any(p.throughput is not None for p in self.curves.previous):
            middle.append([(marks.previous_sample, "previous"), (" previous run", "label")])
        if self.curves.limit_ms is not None:
            middle.append([(marks.limit_sample, "limit"), (f" limit {self.curves.limit_ms:g} ms", "label")])
        room = end - used - 2
        while middle and sum(length(part) + 3 for part in middle) > room:
            middle.pop()
        start = used + (room - sum(length(part) + 3 for part in middle)) // 2 + 2
        for part in middle:
            start = put(row, start, part) + 3
        return row

    def _nothing(self) -> list[list[Cell]]:
        rows: list[list[Cell]] = [[(" ", "label")] * self.width for _ in range(self.height)]
        text = narrow(self.curves.empty, self.width)
        failed = next((p.state for p in self.curves.points if p.state in _FAILED), None)
        put(rows[self.height // 2], (self.width - len(text)) // 2, [(text, failed or "label")])
        return rows


class CurveChart(Widget):
    """Shows curves; draws anew only when they, the size, the palette or the characters changed."""

    DEFAULT_CSS = """
    CurveChart { height: 1fr; min-height: 4; }
    """

    def __init__(
        self,
        palette: Palette,
        charset: Charset = "unicode",
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._curves = Curves()
        self._palette = palette
        self._charset: Charset = charset
        self._drawn: tuple[Curves, int, int, Palette, Charset] | None = None
        self._picture = Text()
        self.builds = 0
        """Pictures drawn so far."""

    def on_mount(self) -> None:
        # After the first frame and before the first figures, so that neither waits for plotext's import.
        self.call_after_refresh(new_figure, 20, 4)

    @property
    def curves(self) -> Curves:
        return self._curves

    def show(self, curves: Curves) -> None:
        """Show these from now on. Nothing happens when they are equal to those shown."""
        if curves != self._curves:
            self._curves = curves
            self.refresh()

    def paint_with(self, palette: Palette) -> None:
        """Use another palette: the theme changed."""
        if palette != self._palette:
            self._palette = palette
            self.refresh()

    def render(self) -> Text:
        width, height = self.content_size
        wanted = (self._curves, width, height, self._palette, self._charset)
        if wanted != self._drawn:
            self._picture = render(*wanted)
            self._drawn = wanted
            self.builds += 1
        return self._picture


def _number(role: str) -> int:
    return _ROLES.index(role) + 1


def _cells(line: str, width: int) -> list[Cell]:
    """A line of plotext's output as cells; where it set no colour it drew an axis or a tick's label."""
    cells: list[Cell] = []
    role = ""
    parts = _CODE.split(line)
    for index, part in enumerate(parts):
        if index % 2:
            number = part.rpartition("38;5;")[2] if "38;5;" in part else ""
            role = _ROLES[int(number) - 1] if number.isdigit() else ""
        else:
            cells += [(character, role or ("axis" if character in "┤├│┼" else "label")) for character in part]
    return (cells + [(" ", "label")] * width)[:width]


def _style(palette: Palette, role: str) -> Style:
    style: Style = getattr(palette, role)
    return style


def _curve(pairs: Iterable[tuple[int, float | None]]) -> list[tuple[float, float]]:
    return [(math.log2(size), value) for size, value in pairs if value is not None]


def _spaced(axis: Axis | None, before: int, after: int) -> Axis | None:
    """The axis with blanks between its labels and itself."""
    if axis is None:
        return None
    return replace(axis, labels=tuple(" " * before + label + " " * after for label in axis.labels))
