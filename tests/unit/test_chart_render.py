"""The chart as text: every size, every character set, every awkward run."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from tui.terminal import Charset
from tui.theming import load_themes
from tui.widgets.chart_scale import batch_axis, compact, thin, value_axis
from tui.widgets.curve_chart import new_figure, render
from tui.widgets.curves import CurvePoint, Curves

THEMES = load_themes()
PALETTE = THEMES.get("dark").palette
SIZES = [(w, h) for w in (20, 21, 39, 40, 50, 78, 100, 120, 200) for h in (4, 5, 9, 16, 50)]


def point(
    size: int, throughput: float, latency: float, spread: float = 0.01, state: str = "stable"
) -> CurvePoint:
    return CurvePoint(
        size,
        throughput,
        throughput * (1 - spread),
        throughput * (1 + spread),
        latency,
        state,  # type: ignore[arg-type]
    )


POINTS = (
    point(1, 6139, 0.16),
    point(8, 14532, 0.55),
    point(32, 20801, 1.54, 0.006),
    point(128, 21373, 5.99),
    point(512, 17538, 29.2, 0.13, "noisy"),
)
BEFORE = tuple(point(p.batch_size, (p.throughput or 0) * 0.8, 1.0) for p in POINTS)
FULL = Curves(POINTS, BEFORE, peak=128, knee=32, limit_ms=20)


def lines(curves: Curves, width: int = 78, height: int = 9, charset: Charset = "unicode") -> list[str]:
    return render(curves, width, height, PALETTE, charset).plain.split("\n")


def style_at(text: Text, fragment: str) -> set[str]:
    """The styles on the first place where a fragment stands."""
    start = text.plain.index(fragment)
    return {str(span.style) for span in text.spans if span.start <= start < span.end}


def test_the_chart_of_the_design_looks_as_it_should() -> None:
    assert lines(FULL) == [
        "▄▀ images/s           • • previous run   ╌ ╌ limit 20 ms             p50 ms ⠤⠒",
        "    │                                      ●▄▄▄▄▄▄▄▄▄▄▄▄▄●            ⢀◇  ├ 30",
        "20k ┤                               ▄▄▄▞▀▀▀ knee 32      ▝▀▀▀▀▀▀▚▄▄▄▄▄▄○  │   ",
        "    │╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌●▄▄▄▞▀▀▀ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ⡠⠔⠁ ╌ ┴ ╌├ 20",
        "10k ┤               ▗▄▄▄▞▀▀▀▘• • •                   peak 128 ⣀⠔⠉         │   ",
        "    │      •▄▄▄▄▀▀▀▀▘•                                     ⢀⠔⠊            ├ 10",
        "    │  ●▀▀▀▀                                         ⢀⣀⣀⣀◇⠊⠁              │   ",
        "  0 ┤  ◇⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀◇⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀◇⠤⠤⠔⠒⠒⠒⠉⠉⠉⠁                    ├ 0 ",
        "batch   1                    8           32            128           512      ",
    ]


@pytest.mark.parametrize("charset", ["unicode", "ascii"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_size_is_filled_exactly(width: int, height: int, charset: Charset) -> None:
    drawn = lines(FULL, width, height, charset)
    assert [len(line) for line in drawn] == [width] * height
    for size in ("1", "8", "128"):
        assert size in drawn[-1].split()


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_plain_uses_ascii_only(width: int, height: int) -> None:
    assert "\n".join(lines(FULL, width, height, "ascii")).isascii()


@pytest.mark.parametrize(("width", "height"), [(0, 0), (1, 1), (5, 2), (19, 10), (80, 3), (-1, 4)])
def test_too_small_a_place_says_so_in_the_room_there_is(width: int, height: int) -> None:
    drawn = render(FULL, width, height, PALETTE).plain
    assert len(drawn) <= max(width, 0)
    assert "the chart needs 20x4".startswith(drawn)


def test_importing_the_chart_and_drawing_an_empty_one_loads_no_plotext() -> None:
    program = (
        "import sys; from tui.widgets.curve_chart import *; from tui.theming import load_themes;"
        "render(Curves(), 78, 9, load_themes().get(None).palette);"
        "sys.exit('plotext' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_drawing_twice_gives_the_same_picture() -> None:
    first = render(FULL, 120, 20, PALETTE)
    render(Curves(POINTS[:1]), 40, 8, PALETTE)
    assert render(FULL, 120, 20, PALETTE) == first


def test_a_chart_wider_than_the_terminal_the_tests_run_in_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("LINES", "10")
    assert lines(FULL, 200, 50)[1].endswith(" ")
    assert "512" in lines(FULL, 200, 50)[-1]


@pytest.mark.parametrize("charset", ["unicode", "ascii"])
def test_each_point_stands_at_its_log2_place_and_its_height(charset: Charset) -> None:
    mark = "●" if charset == "unicode" else "@"
    doubling = Curves(tuple(point(2**n, 1000.0 * n, 1.0) for n in range(1, 6)))
    drawn = lines(doubling, 101, 31, charset)[1:-1]
    places = sorted((line.index(mark), row) for row, line in enumerate(drawn) if mark in line)
    columns, rows = [column for column, _ in places], [row for _, row in places]
    assert len(places) == 5
    assert max(b - a for a, b in pairwise(columns)) - 1 <= columns[1] - columns[0]
    assert max(a - b for a, b in pairwise(rows)) - 1 <= rows[0] - rows[1]
    assert rows == sorted(rows, reverse=True)


def test_a_wide_interval_is_drawn_and_a_narrow_one_is_not() -> None:
    wide = "\n".join(lines(Curves((point(1, 100, 1, 0.0), point(8, 100, 1, 0.4, "noisy"))), 60, 16))
    assert wide.count("┴") == 1
    assert wide.count("○") == 1
    assert "┴" not in "\n".join(lines(Curves((point(1, 100, 1, 0.0), point(8, 100, 1, 0.001))), 60, 16))


def test_an_interval_that_reaches_far_over_the_curve_does_not_flatten_it() -> None:
    drawn = lines(Curves((point(1, 100, 1, 0.0), point(8, 100, 1, 50.0, "noisy"))), 60, 16)
    assert "●" in drawn[2]
    assert any("│" in line[6:-6] for line in drawn)


@pytest.mark.parametrize("width", [40, 50, 60, 78, 100, 120, 200])
@pytest.mark.parametrize("height", [5, 9, 16, 30])
def test_peak_and_knee_are_named_somewhere(width: int, height: int) -> None:
    text = "\n".join(lines(FULL, width, height))
    assert "peak 128" in text
    if width >= 60:
        assert "knee 32" in text


def test_one_size_that_is_both_peak_and_knee_is_named_once() -> None:
    text = "\n".join(lines(Curves(POINTS, peak=32, knee=32)))
    assert "peak 32" in text
    assert "knee" not in text


def test_sizes_that_failed_are_crossed_and_named() -> None:
    failed = (
        CurvePoint(128, state="oom"),
        CurvePoint(512, state="skipped"),
        CurvePoint(1024, state="skipped"),
    )
    drawn = lines(Curves(POINTS[:3] + failed, peak=32))
    text = "\n".join(drawn)
    assert text.count("×") == 3
    assert text.count("oom") == text.count("skipped") == 1
    assert "128" in drawn[-1]


@pytest.mark.parametrize(
    "points", [(), (CurvePoint(512, state="oom"),), tuple(CurvePoint(n, state="error") for n in (1, 8, 32))]
)
def test_nothing_measured_is_said_in_an_empty_chart(points: tuple[CurvePoint, ...]) -> None:
    drawn = lines(Curves(points, empty="nothing could be measured"))
    assert [len(line) for line in drawn] == [78] * 9
    assert "nothing could be measured" in drawn[4]


def test_before_the_first_figure_the_previous_run_is_there() -> None:
    text = "\n".join(lines(Curves((CurvePoint(1, state="measuring"),), BEFORE)))
    assert "previous run" in text
    assert text.count("•") > 10


def test_latency_without_figures_has_no_axis() -> None:
    drawn = lines(Curves((CurvePoint(1, 10.0), CurvePoint(8, 20.0))))
    assert "ms" not in drawn[0]
    assert not any("├" in line for line in drawn)


def test_a_limit_far_over_the_latencies_is_named_but_does_not_squeeze_them() -> None:
    drawn = lines(Curves(POINTS, limit_ms=500))
    assert "limit 500 ms" in drawn[0]
    assert not any("╌" in line for line in drawn[1:])
    assert any("╌" in line for line in lines(Curves(POINTS, limit_ms=40))[1:])


def test_curves_are_told_apart_without_colour_by_their_characters() -> None:
    text = "\n".join(lines(FULL, charset="ascii"))
    assert {"*", "-", ".", "~"} <= set(text)
    header = lines(FULL, charset="ascii")[0]
    assert header.startswith("*@* images/s")
    assert header.endswith("p50 ms -o-")


def test_colours_come_from_the_palette() -> None:
    for theme in THEMES.by_name.values():
        drawn = render(FULL, 100, 16, theme.palette)
        assert style_at(drawn, "▄▄▄▀") == {str(theme.palette.throughput)}
        assert style_at(drawn, "◇⣀⣀") == {str(theme.palette.latency)} - {"none"}
        assert style_at(drawn, "peak 128") == {str(theme.palette.peak)}
        assert style_at(drawn, "╌ ╌ limit") == {str(theme.palette.limit)}
        assert style_at(drawn, "previous run") == {str(theme.palette.label)} - {"none"}


def test_texts_of_the_model_cannot_steer_the_terminal_or_shift_the_chart() -> None:
    drawn = lines(Curves(POINTS, unit="[red]\x1b[2J画像/s" + "x" * 300))
    assert [len(line) for line in drawn] == [78] * 9
    assert "\x1b" not in "".join(drawn)
    assert "[red]" in drawn[0]


finite_or_not = st.one_of(
    st.none(),
    st.floats(),
    st.floats(min_value=0, max_value=1e15),
    st.sampled_from([0.0, 1e-12, 1e15, math.inf, math.nan]),
)
any_point = st.builds(
    CurvePoint,
    batch_size=st.integers(min_value=1, max_value=2**25),
    throughput=finite_or_not,
    low=finite_or_not,
    high=finite_or_not,
    latency_ms=finite_or_not,
    state=st.sampled_from(["measuring", "stable", "noisy", "short", "oom", "error", "skipped", "cancelled"]),
)


@settings(max_examples=80, deadline=None)
@given(
    points=st.lists(any_point, max_size=12).map(tuple),
    previous=st.lists(any_point, max_size=4).map(tuple),
    limit=finite_or_not,
    width=st.integers(20, 90),
    height=st.integers(4, 20),
    charset=st.sampled_from(["unicode", "ascii"]),
)
def test_no_figure_breaks_the_chart(
    points: tuple[CurvePoint, ...],
    previous: tuple[CurvePoint, ...],
    limit: float | None,
    width: int,
    height: int,
    charset: Charset,
) -> None:
    first = points[0].batch_size if points else None
    drawn = lines(Curves(points, previous, peak=first, knee=first, limit_ms=limit), width, height, charset)
    assert [len(line) for line in drawn] == [width] * height


def test_two_thousand_sizes_keep_their_peak_and_a_readable_axis() -> None:
    many = tuple(point(n, 1000.0 + (5000 if n == 777 else n % 7), n / 10) for n in range(1, 2001))
    drawn = lines(Curves(many, peak=777))
    assert "peak 777" in "\n".join(drawn)
    labels = drawn[-1].split()
    assert {"1", "777", "2000"} <= set(labels)
    assert all(len(label) <= 5 for label in labels)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), max_size=80))
def test_thinned_curves_set_the_same_dots_with_at_most_four_points_a_column(
    dots: list[tuple[int, int]],
) -> None:
    dots.sort(key=lambda dot: dot[0])
    kept = thin(dots)
    assert len(kept) <= 4 * len({x for x, _ in dots})
    assert kept[:1] == dots[:1]
    assert kept[-1:] == dots[-1:]
    assert _set_dots(kept) == _set_dots(dots)


def _set_dots(dots: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """The dots of the straight lines between these, by plotext's own arithmetic."""
    from plotext._utility import get_lines

    xs, ys = get_lines([x for x, _ in dots], [y for _, y in dots], ["x"] * len(dots))[:2]
    return set(zip(xs, ys, strict=True))


class CountingFigure:
    """Counts the points that a figure is given, and lets it draw them."""

    def __init__(self, figure: Any) -> None:
        self._figure = figure
        self.points = 0

    def plot(self, xs: list[float], ys: list[float], **how: Any) -> None:
        self.points += len(xs)
        self._figure.plot(xs, ys, **how)

    def scatter(self, xs: list[float], ys: list[float], **how: Any) -> None:
        self.points += len(xs)
        self._figure.scatter(xs, ys, **how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._figure, name)


@pytest.mark.parametrize("count", [500, 2000, 20_000])
def test_the_points_that_plotext_draws_are_bounded_by_the_width_whatever_the_run(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[CountingFigure] = []

    def counting(width: int, height: int) -> CountingFigure:
        figures.append(CountingFigure(new_figure(width, height)))
        return figures[-1]

    monkeypatch.setattr("tui.widgets.curve_chart.new_figure", counting)
    rough = tuple(point(n, 1000.0 + n * 7919 % 997, 1.0 + n * 7907 % 991) for n in range(1, count + 1))
    drawn = lines(Curves(rough, rough, limit_ms=500.0), 80, 12)
    assert len(drawn) == 12
    two_curves_two_dots_a_column = 2 * 2 * 4 * 80
    assert [figure.points <= two_curves_two_dots_a_column + 2 * 80 for figure in figures] == [True]


def test_two_thousand_sizes_keep_peak_ends_and_every_failure() -> None:
    many = [point(n, 1000.0 + n * 7919 % 97, 100.0) for n in range(1, 2001)]
    many[0] = point(1, 3000.0, 100.0)
    many[699] = point(700, 4000.0, 100.0)
    many[1999] = point(2000, 2000.0, 100.0)
    failed = (20, 150, 600, 1200, 1990)
    for size in failed:
        many[size - 1] = CurvePoint(size, state="oom")
    rows = lines(Curves(tuple(many), peak=700), 100, 16)[1:-1]
    assert "peak 700" in "\n".join(rows)
    assert rows[-1].count("×") == len(failed)
    blocks = set("▖▗▘▙▚▛▜▝▞▟▄▀█▌▐")
    drawn = [(row, column) for row, text in enumerate(rows) for column, c in enumerate(text) if c in blocks]
    top = 4000.0 * 1.08
    for end, throughput in ((min, 3000.0), (max, 2000.0)):
        column = end(column for _, column in drawn)
        highest = min(row for row, its in drawn if its == column)
        assert highest == math.floor((1 - throughput / top) * len(rows))


@pytest.mark.parametrize(
    ("value", "step", "label"),
    [
        (0, 10_000, "0"),
        (20_000, 10_000, "20k"),
        (2_500, 2_500, "2.5k"),
        (7_500, 2_500, "7.5k"),
        (1_500_000, 500_000, "1.5M"),
        (400, 200, "400"),
        (0.25, 0.25, "0.25"),
        (0.0005, 0.0005, "0.0005"),
        (30, 10, "30"),
        (3e9, 1e9, "3G"),
    ],
)
def test_tick_labels_are_short(value: float, step: float, label: str) -> None:
    assert compact(value, step) == label


@given(highest=st.floats(min_value=1e-9, max_value=1e12), rows=st.integers(2, 60))
def test_value_axes_start_at_zero_reach_over_the_highest_and_have_a_second_label(
    highest: float, rows: int
) -> None:
    axis = value_axis(highest, rows)
    assert axis.low == axis.ticks[0] == 0
    assert axis.high > highest
    assert 2 <= len(axis.ticks) <= max(2, rows)
    assert axis.ticks[-1] <= axis.high


@given(sizes=st.sets(st.integers(1, 2**20), min_size=1, max_size=60).map(sorted), columns=st.integers(8, 150))
def test_batch_labels_never_touch(sizes: list[int], columns: int) -> None:
    axis = batch_axis(sizes, sizes[:1], columns)
    assert str(sizes[0]) in axis.labels
    places = [
        (axis.cell(tick, columns), len(label)) for tick, label in zip(axis.ticks, axis.labels, strict=True)
    ]
    assert all(b - a >= 1 for (a, _), (b, _) in pairwise(places))


def test_what_leads_is_not_called_the_peak_before_that_is_certain() -> None:
    sure, open_ = (
        "\n".join(lines(Curves(POINTS, peak=128, knee=128, certain=certain))) for certain in (True, False)
    )
    assert "peak 128" in sure
    assert "lead 128" in open_
    assert "peak" not in open_
