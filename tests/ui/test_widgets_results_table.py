"""The live table: what changes, what stays, where the cursor is."""

from __future__ import annotations

import random

import msgspec
import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.strip import Strip

from engine import events
from tui.terminal import Charset
from tui.theming import load_themes, variable_defaults
from tui.widgets.result_rows import COLUMNS, Key, ResultRow, cells, order, result_rows
from tui.widgets.results_table import ResultsTable

THEMES = load_themes()
PALETTE = THEMES.get("dark").palette


class CountingTable(ResultsTable):
    """Counts the lines that are drawn."""

    lines_drawn = 0

    def render_line(self, y: int) -> Strip:
        self.lines_drawn += 1
        return super().render_line(y)


class TableApp(App[None]):
    def __init__(self, charset: Charset = "unicode", theme: str = "dark") -> None:
        super().__init__()
        for each in THEMES.by_name.values():
            self.register_theme(each.textual)
        self.theme = theme
        self.table = CountingTable(THEMES.get(theme).palette, charset)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def compose(self) -> ComposeResult:
        yield self.table

    def shown(self) -> list[str]:
        """The screen's lines that are not empty."""
        texts = [
            "".join(segment.text for segment in self.table.render_line(y))
            for y in range(self.table.size.height)
        ]
        return [text.rstrip() for text in texts if text.strip()]


async def grown(pilot: Pilot[None], table: ResultsTable, rows: int) -> None:
    """Wait until the table has all its lines: thousands come bit by bit."""
    for _ in range(100):
        if table.row_count == rows:
            return
        await pilot.pause()
    raise AssertionError(f"{table.row_count} lines and not {rows}")


def row(size: int, rate: float | None = 1000.0, state: str = "stable", **more: object) -> ResultRow:
    ends = {} if rate is None else {"low": rate * 0.99, "high": rate * 1.01, "p50_ms": size / rate * 1000}
    return ResultRow(size, state, rate, **(ends | more))  # type: ignore[arg-type]


ROWS = (
    ResultRow(1, "stable", 6139, 6072, 6206, 0.16, 0.24, 0.163, 12),
    ResultRow(8, "stable", 14532, 14416, 14648, 0.55, 0.71, 0.069, 14),
    ResultRow(32, "stable", 20801, 20676, 20926, 1.54, 1.90, 0.048, 22, ("knee", "limit")),
    ResultRow(128, "stable", 21373, 21117, 21629, 5.99, 6.80, 0.047, 61, ("peak",)),
    ResultRow(512, "noisy", 17538, 17029, 18047, 29.2, None, 0.057, 208),
    ResultRow(2048, "oom"),
)


async def test_the_table_of_the_design_fits_eighty_columns() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show(ROWS)
        await pilot.pause()
        shown = app.shown()
        assert shown[0].split() == [
            "batch",
            "▲",
            "images/s",
            "±",
            "p50",
            "ms",
            "p99",
            "ms",
            "ms/image",
            "MB",
            "state",
        ]
        assert shown[3].split() == [
            "knee+limit",
            "32",
            "20,800",
            "0.6",
            "%",
            "1.54",
            "1.90",
            "0.04800",
            "22",
            "stable",
        ]
        assert shown[4].startswith("        peak 128")
        assert shown[6].split() == ["2048", "—", "—", "—", "—", "—", "—", "oom"]
        assert not app.table.show_horizontal_scrollbar
        assert max(map(len, shown)) <= 78
    assert sum(column.width for column in COLUMNS) == 78


async def test_every_state_is_a_word() -> None:
    app = TableApp(theme="no-colour")
    states = ("measuring", "stable", "noisy", "short", "oom", "error", "skipped", "cancelled")
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show(row(2**n, None, state) for n, state in enumerate(states))
        await pilot.pause()
        assert [line.split()[-1] for line in app.shown()[1:]] == list(states)


async def test_plain_tables_are_ascii() -> None:
    app = TableApp("ascii")
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show(ROWS, unit="画像/s")
        app.table.sort_by("throughput")
        await pilot.pause()
        assert "\n".join(app.shown()).isascii()


async def test_brackets_in_the_unit_are_shown_as_they_are() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show(ROWS, unit="[/x]\x1b")
        await pilot.pause()
        assert "[/x]␛" in app.shown()[0]
        assert "ms/[" in app.shown()[0]


async def test_only_cells_that_changed_are_written() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show(ROWS)
        await pilot.pause()
        written, app.table.lines_drawn = app.table.cells_written, 0
        assert written == len(ROWS) * len(COLUMNS)
        app.table.show(msgspec.structs.replace(row) for row in ROWS)
        await pilot.pause()
        assert (app.table.cells_written, app.table.lines_drawn) == (written, 0)
        changed = ResultRow(512, "stable", 17538, 17029, 18047, 29.2, None, 0.057, 208)
        app.table.show((*ROWS[:4], changed, *ROWS[5:]))
        await pilot.pause()
        assert (app.table.cells_written, app.table.lines_drawn) == (written + 1, 1)
        assert app.shown()[5].endswith("stable")


async def test_a_change_in_digits_that_are_not_shown_draws_nothing() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show([row(8, 1000.0, memory_mb=12.01)])
        await pilot.pause()
        written, app.table.lines_drawn = app.table.cells_written, 0
        app.table.show([row(8, 1000.0, memory_mb=12.02)])
        await pilot.pause()
        assert (app.table.cells_written, app.table.lines_drawn) == (written, 0)


async def test_a_line_out_of_sight_shows_what_came_meanwhile_when_it_is_scrolled_to() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 6)) as pilot:
        app.table.show(row(size) for size in range(1, 41))
        app.table.focus()
        await pilot.press("end")
        await pilot.press("home")
        app.table.show(row(size, 7.0 if size == 40 else 1000.0) for size in range(1, 41))
        await pilot.press("end")
        await pilot.pause()
        assert app.shown()[-1].split()[:2] == ["40", "7.00"]


async def test_rows_come_in_order_and_go() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)):
        app.table.show([ROWS[1], ROWS[4]])
        app.table.show([ROWS[4], ROWS[0], ROWS[1], ROWS[2]])
        assert app.table.order == (1, 8, 32, 512)
        app.table.show([ROWS[4], ROWS[2]])
        assert app.table.order == (32, 512)
        app.table.show([])
        assert app.table.order == ()
        assert app.table.selected is None


async def test_the_cursor_stays_on_its_row_while_others_come_go_and_are_sorted() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show(ROWS[1:])
        app.table.focus()
        await pilot.press("down", "down")
        assert app.table.selected == 128
        app.table.show(ROWS)
        assert app.table.selected == 128
        for _ in COLUMNS:
            app.table.sort_by_next_column()
            assert app.table.selected == 128
            app.table.reverse_order()
            await pilot.pause()
            assert app.table.selected == 128
            assert app.shown()[1 + app.table.cursor_row].split()[:2] == ["peak", "128"]
        app.table.show([ROWS[3], ROWS[5]])
        assert app.table.selected == 128
        app.table.show([ROWS[5]])
        await pilot.pause()
        assert app.table.selected == 2048


async def test_sorting_stays_while_figures_change() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show([row(1, 100), row(8, 300), row(32, 200), row(64, None, "oom")])
        app.table.sort_by("throughput")
        assert app.table.order == (8, 32, 1, 64)
        app.table.show([row(1, 400), row(8, 300), row(32, 200), row(64, None, "oom")])
        assert app.table.order == (1, 8, 32, 64)
        await pilot.pause()
        assert [int(line.split()[0]) for line in app.shown()[1:]] == [1, 8, 32, 64]


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("key", [column.key for column in COLUMNS])
def test_rows_without_a_value_are_last_whichever_way_round(key: Key, descending: bool) -> None:
    mixed = [*ROWS, ResultRow(4096, "skipped"), ResultRow(3, "measuring")]
    sizes = order(mixed, key, descending=descending)
    assert sorted(sizes) == sorted(each.batch_size for each in mixed)
    missing = {"batch": 0, "state": 0, "p99": 4}.get(key, 3)
    assert set(sizes[len(sizes) - missing :]) <= {3, 512, 2048, 4096}
    assert len(set(sizes) & {3, 2048, 4096}) == 3


def test_sorting_goes_by_values_and_not_by_texts() -> None:
    rows = [row(1, 9_000), row(2, 80_000), row(3, 700)]
    assert order(rows, "throughput", descending=True) == [2, 1, 3]
    assert order([row(n) for n in (128, 8, 16)], "batch", descending=False) == [8, 16, 128]


async def test_a_click_on_a_head_sorts_by_it_and_a_second_one_turns_the_order() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show(ROWS)
        await pilot.pause()
        await pilot.click(ResultsTable, offset=(22, 0))
        assert app.table.sorted_by == ("throughput", True)
        await pilot.click(ResultsTable, offset=(22, 0))
        await pilot.pause()
        assert app.table.sorted_by == ("throughput", False)
        assert "images/s▲" in app.shown()[0]


async def test_another_palette_restyles_every_row() -> None:
    app = TableApp()
    light = THEMES.get("light").palette
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show(ROWS)
        await pilot.pause()
        app.table.paint_with(light)
        await pilot.pause()
        colours = {
            segment.text.strip(): segment.style.color
            for y in range(1, 7)
            for segment in app.table.render_line(y)
            if segment.style is not None
        }
        assert colours["noisy"] == light.noisy.color
        assert colours["peak 128"] == light.peak.color


async def test_two_thousand_rows_cost_a_move_or_a_change_no_more_than_the_screen_shows() -> None:
    app = TableApp()
    many = [row(size, 1000.0 + random.Random(size).random()) for size in range(1, 2001)]
    async with app.run_test(size=(80, 24)) as pilot:
        app.table.show(row(size, None, "measuring") for size in range(1, 2001))
        app.table.focus()
        await grown(pilot, app.table, 2000)
        assert app.table.cells_written <= 24 * len(COLUMNS)
        written = app.table.cells_written
        app.table.show(many)
        await pilot.pause()
        assert app.table.cells_written - written <= 24 * len(COLUMNS)
        written, app.table.lines_drawn = app.table.cells_written, 0
        await pilot.press("down")
        await pilot.pause()
        assert app.table.selected == 2
        assert app.table.lines_drawn <= 2
        assert app.table.cells_written == written
        app.table.lines_drawn = 0
        many[1500] = row(1501, 5.0, "noisy")
        app.table.show(many)
        await pilot.pause()
        assert (app.table.cells_written, app.table.lines_drawn) == (written, 0)
        await pilot.press("end")
        await pilot.pause()
        assert app.table.selected == 2000
        assert app.shown()[-1].split()[0] == "2000"


async def test_fewer_rows_take_the_place_of_thousands() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.table.show(row(size) for size in range(1, 2001))
        app.table.focus()
        assert 24 < app.table.row_count < 2000
        await grown(pilot, app.table, 2000)
        await pilot.press("end")
        app.table.show(row(size) for size in (1990, 2000))
        await pilot.pause()
        assert app.table.selected == 2000
        assert [line.split()[0] for line in app.shown()[1:]] == ["1990", "2000"]
        app.table.show(row(size) for size in (3, 4, 5))
        await pilot.pause()
        assert app.table.selected == 4
        assert [line.split()[0] for line in app.shown()[1:]] == ["3", "4", "5"]


@pytest.mark.parametrize("width", [30, 78, 100])
async def test_lines_are_as_wide_as_the_table_and_scroll_sideways(width: int) -> None:
    app = TableApp()
    async with app.run_test(size=(width, 12)) as pilot:
        app.table.show(ROWS)
        await pilot.pause()
        whole = app.table.render_line(4).text
        app.table.scroll_to(x=10, animate=False)
        await pilot.pause()
        moved = app.table.render_line(4).text
        assert len(whole) == len(moved) == app.table.size.width
        assert moved.startswith(whole[10:] if width < 78 else whole)


async def test_a_click_on_a_row_puts_the_cursor_there() -> None:
    app = TableApp()
    async with app.run_test(size=(100, 12)) as pilot:
        app.table.show(ROWS)
        await pilot.pause()
        await pilot.click(ResultsTable, offset=(20, 3))
        assert app.table.selected == 32
        await pilot.click(ResultsTable, offset=(95, 5))
        assert app.table.selected == 512


async def test_no_binding_of_the_table_is_without_id_and_tooltip_or_needs_ctrl() -> None:
    for _, binding in ResultsTable(PALETTE)._bindings:
        assert binding.id
        assert binding.tooltip
        assert "ctrl" not in binding.key


@pytest.mark.parametrize("size", [(1, 1), (10, 3), (40, 10), (200, 50)])
async def test_any_terminal_size_is_survived(size: tuple[int, int]) -> None:
    app = TableApp()
    async with app.run_test(size=size) as pilot:
        app.table.show(ROWS)
        await pilot.pause()
        assert app.table.order == (1, 8, 32, 128, 512, 2048)


def test_rows_are_marked_by_the_verdict() -> None:
    points = [events.Point(run="r", t=0.0, batch_size=size, state="stable") for size in (1, 8, 32)]
    limit = events.Limit(ms=20, percentile=99, best=8)
    verdict = events.Verdict(
        run="r", t=1.0, peak=32, ties=(), knee=8, kind="interior", limit=limit, cost=None, certain=True
    )
    assert [each.marks for each in result_rows(points, verdict)] == [(), ("knee", "limit"), ("peak",)]


@pytest.mark.parametrize(("knee", "marks"), [(8, [("knee",), ("lead",)]), (32, [(), ("lead",)])])
def test_what_leads_is_not_called_the_peak_before_that_is_certain(
    knee: int, marks: list[tuple[str, ...]]
) -> None:
    points = [events.Point(run="r", t=0.0, batch_size=size, state="stable") for size in (8, 32)]
    verdict = events.Verdict(
        run="r", t=1.0, peak=32, ties=(), knee=knee, kind="interior", limit=None, cost=None, certain=False
    )
    rows = result_rows(points, verdict)
    assert [each.marks for each in rows] == marks
    assert cells(rows[1], PALETTE, "unicode")[0].plain.strip() == "lead 32"
    assert all(not each.marks for each in result_rows(points, None))


@pytest.mark.parametrize("throughput", [18_900_000.0, 189_123_456.0, 2.5e13])
def test_large_figures_neither_touch_their_neighbour_nor_lose_digits(throughput: float) -> None:
    row = ResultRow(512, "stable", throughput, ms_per_item=1000 / throughput, memory_mb=1_234_567.0)
    texts = [cell.plain for cell in cells(row, PALETTE, "unicode")]
    assert all(text.startswith(" ") for text in texts)
    shown = texts[1].strip()
    sign = shown[-1]
    assert float(shown[:-1]) * {"M": 1e6, "T": 1e12}[sign] == pytest.approx(throughput, rel=0.005)
    assert float(texts[5]) == pytest.approx(1000 / throughput, rel=0.005)


def test_a_row_with_every_mark_names_all_of_them() -> None:
    row = ResultRow(512, "stable", 100.0, marks=("peak", "knee", "limit"))
    assert cells(row, PALETTE, "unicode")[0].plain.strip() == "pk+kn+lim 512"


def test_a_size_that_is_slower_in_a_fresh_process_is_marked() -> None:
    def row(fresh: float, *, agrees: bool) -> ResultRow:
        confirmed = events.Confirmed(throughput=fresh, low=None, high=None, agrees=agrees)
        point = events.Point(
            run="r", t=0.0, batch_size=32, state="stable", throughput=11_270.0, confirmed=confirmed
        )
        return result_rows([point], None)[0]

    assert row(3_900.0, agrees=False).marks == ("fell",)
    assert cells(row(3_900.0, agrees=False), PALETTE, "unicode")[0].plain.strip() == "fell 32"
    assert row(11_200.0, agrees=True).marks == ()
    assert row(14_000.0, agrees=False).marks == ()
