"""The chart as a widget: it draws when something changed, and only then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from textual.app import App, ComposeResult
from textual.strip import Strip

from tui.theming import Palette, load_themes, variable_defaults
from tui.widgets.curve_chart import CurveChart, render
from tui.widgets.curves import CurvePoint, Curves

THEMES = load_themes()
ONE = Curves((CurvePoint(1, 100.0, 90.0, 110.0, 5.0), CurvePoint(8, 400.0, 390.0, 410.0, 9.0)))


class CountingChart(CurveChart):
    """Notes the lines that are painted."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette)
        self.painted: list[int] = []

    def render_line(self, y: int) -> Strip:
        self.painted.append(y)
        return super().render_line(y)


class ChartApp(App[None]):
    def __init__(self, theme: str = "dark") -> None:
        super().__init__()
        for each in THEMES.by_name.values():
            self.register_theme(each.textual)
        self.theme = theme
        self.chart = CountingChart(THEMES.get(theme).palette)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def compose(self) -> ComposeResult:
        yield self.chart


async def test_a_chart_first_shown_empty_shows_what_comes_later() -> None:
    app = ChartApp()
    async with app.run_test(size=(78, 12)) as pilot:
        assert "no figures yet" in app.chart.render().plain
        app.chart.show(ONE)
        await pilot.pause()
        assert "400" in app.chart.render().plain


async def test_repainting_equal_curves_draws_nothing_anew() -> None:
    app = ChartApp()
    async with app.run_test(size=(78, 12)) as pilot:
        app.chart.show(ONE)
        await pilot.pause()
        builds = app.chart.builds
        app.chart.show(Curves(tuple(ONE.points)))
        app.chart.refresh()
        await pilot.pause()
        app.chart.refresh(layout=True)
        await pilot.pause()
        assert app.chart.builds == builds


async def test_new_figures_a_new_size_and_a_new_palette_each_draw_once() -> None:
    app = ChartApp()
    async with app.run_test(size=(78, 12)) as pilot:
        await pilot.pause()
        builds = app.chart.builds
        app.chart.show(ONE)
        await pilot.pause()
        assert app.chart.builds == builds + 1
        app.chart.paint_with(THEMES.get("light").palette)
        app.chart.paint_with(THEMES.get("light").palette)
        await pilot.pause()
        assert app.chart.builds == builds + 2
        await pilot.resize_terminal(100, 20)
        await pilot.pause()
        assert app.chart.builds == builds + 3
        assert len(app.chart.render().plain.split("\n")[0]) == 100


async def test_a_figure_that_moves_by_less_than_a_dot_draws_nothing_anew() -> None:
    app = ChartApp()
    async with app.run_test(size=(78, 12)) as pilot:
        app.chart.show(ONE)
        await pilot.pause()
        builds, shown = app.chart.builds, app.chart.render().plain
        last = ONE.points[-1]
        app.chart.show(Curves((ONE.points[0], msgspec.structs.replace(last, throughput=400.01, low=390.02))))
        await pilot.pause()
        assert (app.chart.builds, app.chart.render().plain) == (builds, shown)
        app.chart.show(Curves((msgspec.structs.replace(ONE.points[0], throughput=200.0), last)))
        await pilot.pause()
        assert app.chart.builds == builds + 1
        assert app.chart.render().plain != shown


async def test_only_lines_that_changed_are_painted() -> None:
    app = ChartApp()
    async with app.run_test(size=(78, 12)) as pilot:
        app.chart.show(ONE)
        await pilot.pause()
        before = app.chart.render().plain.split("\n")
        app.chart.painted.clear()
        lower = msgspec.structs.replace(ONE.points[0], throughput=140.0)
        app.chart.show(Curves((lower, ONE.points[1])))
        await pilot.pause()
        after = app.chart.render().plain.split("\n")
        assert 0 < len(app.chart.painted) < 12
        assert {y for y in range(12) if before[y] != after[y]} == set(app.chart.painted)
        shown = [strip.text for strip in app.screen._compositor.render_strips()]
        assert [line.rstrip() for line in shown] == [line.rstrip() for line in after]


async def test_a_chart_that_is_hidden_draws_when_it_is_seen_again() -> None:
    app = ChartApp()
    async with app.run_test(size=(78, 12)) as pilot:
        app.chart.show(ONE)
        await pilot.pause()
        builds = app.chart.builds
        app.chart.display = False
        await pilot.pause()
        app.chart.show(Curves(ONE.points, unit="rows/s"))
        await pilot.pause()
        assert app.chart.builds == builds
        app.chart.display = True
        await pilot.pause()
        assert "rows/s" in "".join(strip.text for strip in app.screen._compositor.render_strips())


@pytest.mark.parametrize(
    "changed",
    [
        {"unit": "rows/s"},
        {"latency_label": "p99 ms"},
        {"limit_ms": 8.0},
        {"peak": 8},
        {"knee": 1},
        {"previous": ONE.points},
        {"points": (ONE.points[0], msgspec.structs.replace(ONE.points[1], state="noisy"))},
        {"points": (ONE.points[0], CurvePoint(8, state="oom"))},
        {"points": (CurvePoint(1, state="oom"), CurvePoint(8, state="error")), "empty": "nothing"},
    ],
)
async def test_whatever_changes_the_picture_draws_it_anew(changed: dict[str, Any]) -> None:
    app = ChartApp()
    curves = replace(ONE, **changed)
    async with app.run_test(size=(78, 12)) as pilot:
        app.chart.show(ONE)
        await pilot.pause()
        app.chart.show(curves)
        await pilot.pause()
        assert app.chart.render() == render(curves, 78, 12, THEMES.get("dark").palette)
        assert app.chart.render() != render(ONE, 78, 12, THEMES.get("dark").palette)


@pytest.mark.parametrize("size", [(1, 1), (19, 3), (20, 4), (80, 24), (200, 50)])
async def test_any_terminal_size_is_survived(size: tuple[int, int]) -> None:
    app = ChartApp("no-colour")
    async with app.run_test(size=size) as pilot:
        app.chart.show(ONE)
        await pilot.pause()
        assert app.chart.builds >= 1


async def test_a_peak_that_is_none_any_more_loses_its_word_though_no_figure_moved() -> None:
    app = ChartApp()
    async with app.run_test(size=(78, 12)) as pilot:
        for certain, word in ((True, "peak 8"), (False, "lead 8"), (True, "peak 8")):
            app.chart.show(replace(ONE, peak=8, certain=certain))
            await pilot.pause()
            assert word in app.chart.render().plain
