"""The chart as a widget: it draws when something changed, and only then."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from tui.theming import load_themes, variable_defaults
from tui.widgets.curve_chart import CurveChart
from tui.widgets.curves import CurvePoint, Curves

THEMES = load_themes()
ONE = Curves((CurvePoint(1, 100.0, 90.0, 110.0, 5.0), CurvePoint(8, 400.0, 390.0, 410.0, 9.0)))


class ChartApp(App[None]):
    def __init__(self, theme: str = "dark") -> None:
        super().__init__()
        for each in THEMES.by_name.values():
            self.register_theme(each.textual)
        self.theme = theme
        self.chart = CurveChart(THEMES.get(theme).palette)

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


@pytest.mark.parametrize("size", [(1, 1), (19, 3), (20, 4), (80, 24), (200, 50)])
async def test_any_terminal_size_is_survived(size: tuple[int, int]) -> None:
    app = ChartApp("no-colour")
    async with app.run_test(size=size) as pilot:
        app.chart.show(ONE)
        await pilot.pause()
        assert app.chart.builds >= 1
