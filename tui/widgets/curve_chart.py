"""The chart: throughput and latency over log2 batch size, drawn by plotext as a pure function of its curves.

plotext's figures cannot be built twice (a build writes back into the figure), so every picture gets a fresh one. Its
colours are used as labels only: each cell's colour number names a role, and the palette says how that role looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.geometry import Region
from textual.strip import Strip
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


Line = tuple[tuple[str, Style], ...]
"""A line of the chart: texts with their styles."""


def render(curves: Curves, width: int, height: int, palette: Palette, charset: Charset = "unicode") -> Text:
    """The chart as `height` lines of `width` columns; a line of text where it does not fit."""
    if width < SMALLEST[0] or height < SMALLEST[1]:
        return _joined(_notice(width, height, palette))
    return _joined(_painted(_Picture(drawable(curves), width, height, charset), palette))


def _notice(width: int, height: int, palette: Palette) -> list[Line]:
    if width <= 0 or height <= 0:
        return []
    return [((f"the chart needs {SMALLEST[0]}x{SMALLEST[1]}"[:width], palette.dim),)]


def _painted(picture: _Picture, palette: Palette) -> list[Line]:
    return [tuple((run, _style(palette, role)) for run, role in runs(row)) for row in picture.rows()]


def _joined(lines: Sequence[Line]) -> Text:
    text = Text(no_wrap=True, end="")
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        for run, style in line:
            text.append(run, style)
    return text


class _Stroke(NamedTuple):
    """A curve as the dots that plotext is to set or, where they are joined, to draw lines between."""

    dots: tuple[tuple[int, int], ...]
    fine: tuple[int, int]
    """Dots per cell, across and up."""
    marker: str
    role: str
    joined: bool = True
    right: bool = False
    """Whether its values are those of the axis on the right."""


class _Spot(NamedTuple):
    """A character put over the curves."""

    row: int
    column: int
    character: str
    role: str


class _Picture:
    """One drawing: the axes chosen, the figure built, the labels put where they hide nothing.

    What is drawn is known in dots and cells before plotext is asked, which takes most of the time: `key` tells whether
    two pictures look the same.
    """

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
        self.strokes: tuple[_Stroke, ...] = ()
        self.spots: tuple[_Spot, ...] = ()
        self.failures: tuple[tuple[int, int, State], ...] = ()
        self.named: tuple[tuple[_Spot, int], ...] = ()
        if self.bottom is not None and self.left is not None:
            self.strokes = tuple(self._strokes(self.bottom, self.left))
            self.spots = tuple(self._spots(self.bottom, self.left))
            self.failures = tuple(self._failures(self.bottom))
            self.named = tuple(self._named(self.bottom, self.left))

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for pictures that look the same."""
        curves = self.curves
        if self.bottom is None or self.left is None:
            return (self.width, self.height, self.charset, curves.empty, self._first_failure())
        return (
            (self.width, self.height, self.charset),
            (curves.unit, curves.latency_label, curves.limit_ms, self._has_previous()),
            *(
                (axis.labels, tuple(axis.cell(tick, cells) for tick in axis.ticks))
                for axis, cells in (
                    (self.bottom, self.columns),
                    (self.left, self.canvas_rows),
                    (self.right, self.canvas_rows),
                )
                if axis is not None
            ),
            self.strokes,
            self.spots,
            self.failures,
            self.named,
            # The word at a peak, which merely leads until it is certain.
            curves.certain or not self.named,
        )

    def rows(self) -> list[list[Cell]]:
        if self.bottom is None or self.left is None:
            return self._nothing()
        grid = self._draw(self.bottom, self.left)
        for row, column, character, role in self.spots:
            grid[row][column] = (character, role)
        unplaced = [*self._label_failures(grid), *self._label_named(grid)]
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
        if self.right is not None:
            figure.ylim(self.right.low, self.right.high, yside=2)
            figure.yticks(list(self.right.ticks), list(self.right.labels), yside=2)
        for stroke in self.strokes:
            self._plot(figure, stroke, bottom, self.right if stroke.right and self.right else left)
        return _cells(figure)

    def _strokes(self, bottom: Axis, left: Axis) -> Iterator[_Stroke]:
        """The curves, those that cover others last."""
        marks = self.marks
        before = _curve((p.batch_size, p.throughput) for p in self.curves.previous)
        if before:
            before = between(before, bottom, self.columns, every=2) or before
            yield self._stroke(before, bottom, left, (1, 1), marks.previous, "previous", joined=False)
        if self.right is not None:
            limit = self.curves.limit_ms
            if limit is not None and limit <= self.right.high:
                across = between([(bottom.low, limit), (bottom.high, limit)], bottom, self.columns, every=2)
                yield self._stroke(
                    across, bottom, self.right, (1, 1), marks.limit, "limit", joined=False, right=True
                )
            waits = _curve((p.batch_size, p.latency_ms) for p in self.curves.points)
            yield self._stroke(
                waits, bottom, self.right, marks.latency_dots, marks.latency, "latency", right=True
            )
        rates = _curve((p.batch_size, p.throughput) for p in self.known)
        yield self._stroke(rates, bottom, left, marks.throughput_dots, marks.throughput, "throughput")

    def _stroke(
        self,
        curve: Sequence[tuple[float, float]],
        bottom: Axis,
        side: Axis,
        fine: tuple[int, int],
        marker: str,
        role: str,
        *,
        joined: bool = True,
        right: bool = False,
    ) -> _Stroke:
        across, up = self.columns * fine[0], self.canvas_rows * fine[1]
        dots = thin([(bottom.dot(x, across), side.dot(y, up)) for x, y in curve])
        return _Stroke(tuple(dots), fine, marker, role, joined, right)

    def _spots(self, bottom: Axis, left: Axis) -> Iterator[_Spot]:
        """Intervals and a mark at each point, unless they stand so close that they would hide the curves."""
        if len(self.curves.points) * 3 > self.columns:
            return
        across, up = self.marks.latency_dots
        for point in self.curves.points:
            if self.right is not None and point.latency_ms is not None:
                column = self.start + bottom.cell(math.log2(point.batch_size), self.columns, across)
                row = self._row(point.latency_ms, self.right, up)
                yield _Spot(row, column, self.marks.latency_point, "latency")
        for point in self.known:
            yield from self._interval(point, bottom, left)
            yield self._spot(point, bottom, left, "throughput")

    def _interval(self, point: CurvePoint, bottom: Axis, left: Axis) -> Iterator[_Spot]:
        if point.low is None or point.high is None:
            return
        across, up = self.marks.throughput_dots
        column = self.start + bottom.cell(math.log2(point.batch_size), self.columns, across)
        top, floor = self._row(point.high, left, up), self._row(point.low, left, up)
        for row in range(top, floor + 1) if floor > top else ():
            ended = row == top and point.high <= left.high
            character = self.marks.top if ended else self.marks.bottom if row == floor else self.marks.bar
            yield _Spot(row, column, character, "throughput")

    def _spot(self, point: CurvePoint, bottom: Axis, left: Axis, role: str) -> _Spot:
        across, up = self.marks.throughput_dots
        column = self.start + bottom.cell(math.log2(point.batch_size), self.columns, across)
        character = self.marks.settled if point.state == "stable" else self.marks.unsettled
        return _Spot(self._row(point.throughput or 0.0, left, up), column, character, role)

    def _failures(self, bottom: Axis) -> Iterator[tuple[int, int, State]]:
        """Column, size and state of every size without figures."""
        for point in self.curves.points:
            if point.state in _FAILED and point.throughput is None:
                column = self.start + bottom.cell(math.log2(point.batch_size), self.columns)
                yield column, point.batch_size, point.state

    def _named(self, bottom: Axis, left: Axis) -> Iterator[tuple[_Spot, int]]:
        """The peak and the knee, with their sizes."""
        wanted = {"knee": self.curves.knee, "peak": self.curves.peak}
        if self.curves.peak == self.curves.knee:
            del wanted["knee"]
        by_size = {point.batch_size: point for point in self.known}
        for word in sorted(wanted, reverse=True):
            size = wanted[word]
            if size is not None and size in by_size:
                yield self._spot(by_size[size], bottom, left, word), size

    def _row(self, value: float, axis: Axis, dots: int) -> int:
        """The row of the grid, from the top, in which a value lies."""
        return self.canvas_rows - 1 - axis.cell(value, self.canvas_rows, dots)

    def _has_previous(self) -> bool:
        return any(p.throughput is not None for p in self.curves.previous)

    def _first_failure(self) -> str | None:
        return next((p.state for p in self.curves.points if p.state in _FAILED), None)

    def _plot(self, figure: Plot, stroke: _Stroke, bottom: Axis, side: Axis) -> None:
        across, up = self.columns * stroke.fine[0], self.canvas_rows * stroke.fine[1]
        draw = figure.plot if stroke.joined else figure.scatter
        if stroke.dots:
            draw(
                [bottom.value(x, across) for x, _ in stroke.dots],
                [side.value(y, up) for _, y in stroke.dots],
                marker=stroke.marker,
                color=_number(stroke.role),
                yside="right" if stroke.right else "left",
            )

    def _label_failures(self, grid: list[list[Cell]]) -> list[tuple[str, str]]:
        """A cross over the tick of each size without figures, and the word once per kind; returns what found no room."""
        unplaced: list[tuple[str, str]] = []
        told: set[str] = set()
        floor = self.canvas_rows - 1
        for column, size, state in self.failures:
            if grid[floor][column][0] == " ":
                grid[floor][column] = (self.marks.failed, state)
            if state not in told:
                told.add(state)
                if not self._label_near(grid, column, floor, state, state):
                    unplaced.append((f"{state} {size}", state))
        return unplaced

    def _label_named(self, grid: list[list[Cell]]) -> list[tuple[str, str]]:
        """The marks of peak and knee and their words; returns those that found no room."""
        unplaced: list[tuple[str, str]] = []
        for (row, column, character, word), size in self.named:
            grid[row][column] = (character, word)
            label = f"lead {size}" if word == "peak" and not self.curves.certain else f"{word} {size}"
            if not self._label_near(grid, column, row, label, word):
                unplaced.append((label, word))
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
        if self._has_previous():
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
        put(rows[self.height // 2], (self.width - len(text)) // 2, [(text, self._first_failure() or "label")])
        return rows


class CurveChart(Widget):
    """Shows curves; draws anew only what looks different: a figure that moves by less than a dot draws nothing.

    It is drawn by lines, of which only those that changed are painted and sent to the terminal.
    """

    ALLOW_SELECT = (
        False  # lines that a widget draws itself cannot show a selection; the table's cannot either
    )

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
        self._planned: _Picture | None = None
        self._drawn: tuple[object, ...] | None = None
        self._lines: list[Line] = []
        self.builds = 0
        """Pictures drawn so far."""

    def on_mount(self) -> None:
        # After the first frame and before the first figures, so that neither waits for plotext's import.
        self.call_after_refresh(new_figure, 20, 4)

    @property
    def curves(self) -> Curves:
        return self._curves

    def show(self, curves: Curves) -> None:
        """Show these from now on. Nothing happens when they look as those shown."""
        if curves != self._curves:
            self._curves = curves
            self._planned = None
            before = self._lines
            if not self.display:
                self.refresh()
            elif self._draw():
                if len(before) != len(self._lines):
                    self.refresh()
                for y, (old, new) in enumerate(zip(before, self._lines, strict=False)):
                    if old != new:
                        self.refresh(Region(0, y, self.content_size.width, 1))

    def paint_with(self, palette: Palette) -> None:
        """Use another palette: the theme changed."""
        if palette != self._palette:
            self._palette = palette
            self.refresh()

    def render(self) -> Text:
        self._draw()
        return _joined(self._lines)

    def render_lines(self, crop: Region) -> list[Strip]:
        self._draw()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        base = self.visual_style.rich_style
        line = self._lines[y] if y < len(self._lines) else ()
        strip = Strip([Segment(text, base + style) for text, style in line])
        return strip.adjust_cell_length(self.content_size.width, base)

    def _draw(self) -> bool:
        """Draw unless it is drawn already; whether that was to be done."""
        look = self._look()
        if look == self._drawn:
            return False
        planned = self._planned
        self._lines = (
            _painted(planned, self._palette) if planned else _notice(*self.content_size, self._palette)
        )
        self._drawn = look
        self.builds += 1
        return True

    def _look(self) -> tuple[object, ...]:
        """Equal for contents that look the same. Plans the picture, unless the chart has not got the room for one."""
        width, height = self.content_size
        if width < SMALLEST[0] or height < SMALLEST[1]:
            self._planned = None
            return width, height, self._palette
        if self._planned is None or (self._planned.width, self._planned.height) != (width, height):
            self._planned = _Picture(drawable(self._curves), width, height, self._charset)
        return self._planned.key, self._palette


def _number(role: str) -> int:
    return _ROLES.index(role) + 1


def _cells(figure: Any) -> list[list[Cell]]:
    """The figure's lines as cells; where it set no colour it drew an axis or a tick's label.

    They are read from its matrix: `build()` makes one text with codes of it, which takes as long as the drawing.
    """
    monitor = figure.monitor
    monitor.set_size(figure._size)  # noqa: SLF001 - as build() does
    monitor.build_plot()
    matrix = monitor.matrix
    return [
        [
            (
                character,
                _ROLES[number - 1] if isinstance(number, int) else "axis" if character in "┤├│┼" else "label",
            )
            for character, number in zip(characters, numbers, strict=True)
        ]
        for characters, numbers in zip(reversed(matrix.marker), reversed(matrix.fullground), strict=True)
    ]


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
