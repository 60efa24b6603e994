"""The sweep screen: table, chart, details and words; text that must not steer the terminal; sizes from 1x1 on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.events import Paste

from engine import events
from engine.plan import Plan
from tests.ui import scripted_session as scripted
from tests.ui.driving import TERMINAL, driving
from tests.ui.scripted_session import Step
from tui.screens.detail import CALLS_NEEDED
from tui.screens.sweep import SweepScreen
from tui.settings import Settings
from tui.widgets.curve_chart import CurveChart
from tui.widgets.field import Field
from tui.widgets.results_table import ResultsTable

HOSTILE = "[/red] [1, 3, 224] [ \x1b[31m\x07 模型 🚀 " + "x" * 300


async def test_80x24_shows_table_chart_advice_and_keys() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        for text in ("fashion-cnn", "box-07", "peak 128", "knee 32", "images/s", "Deploy 32", "q quit"):
            assert text in driver.screen
        assert driver.app.screen.query_one(CurveChart).size.height >= 10
        assert not driver.app.screen.query_one("#detail").display


@pytest.mark.parametrize("size", [(120, 40), (200, 50)])
async def test_wide_terminals_show_the_details_beside_the_table(size: tuple[int, int]) -> None:
    async with driving(scripted.whole_sweep, size=size) as driver:
        await driver.phase("finished")
        await driver.press("down", "down")
        await driver.shows("batch 32")
        assert "latency of the calls" in driver.screen
        assert "peak 128" in driver.screen


async def test_enter_opens_the_details_in_the_charts_place_and_escape_closes_them() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("end", "enter")
        await driver.shows("batch 512")
        for text in ("needs 299 calls", "page faults", "17,216", "cold call ms", "latency of the calls"):
            assert text in driver.screen
        assert not driver.app.screen.query_one(CurveChart).display
        await driver.press("escape")
        assert driver.app.screen.query_one(CurveChart).display


async def test_the_details_show_a_warning_with_its_remedy_and_an_error_in_full() -> None:
    def script(plan: Plan, run: str) -> list[Step]:
        doubt = events.Warned(
            "outliers", "3 of 40 calls took over 5 times the median.", "Close other programs."
        )
        error = events.ErrorText("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (128x9 and 8x2)")
        return [
            scripted.started(plan, run),
            scripted.ready(run),
            scripted.point(run, 1, warnings=(doubt,)),
            scripted.point(run, 8, "error", error=error),
            scripted.finished(run),
        ]

    async with driving(script, size=(120, 40), plan=Plan(batch_sizes=(1, 8))) as driver:
        await driver.phase("finished")
        await driver.shows("3 of 40 calls")
        assert "Close other programs." in driver.screen
        await driver.press("down")
        await driver.shows("RuntimeError")
        shown = " ".join(driver.text("#detail-figures").split())
        assert "mat1 and mat2 shapes cannot be multiplied (128x9 and 8x2)" in shown


def test_the_calls_that_percentiles_need_are_those_of_the_engine() -> None:
    from engine import stats

    assert {f"p{q}": stats.calls_needed(q) for q in (50, 90, 95, 99)} == CALLS_NEEDED


async def test_the_cursor_stays_on_its_row_when_the_order_changes() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        table = driver.app.screen.query_one(ResultsTable)
        await driver.press("down")
        assert table.selected == 8
        await driver.press("o", "O")
        assert table.sorted_by[0] == "throughput"
        assert table.selected == 8


async def test_only_what_is_possible_is_offered() -> None:
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(1, gate)) as driver:
        await driver.until(gate.reached.is_set)
        await driver.shows("x cancel")
        assert "space pause" in driver.screen
        assert "r run" not in driver.screen
        assert "l limit" not in driver.screen
        gate.open()
        await driver.phase("finished")
        await driver.shows("r run")
        assert "x cancel" not in driver.screen
        assert "space pause" not in driver.screen


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 9), (20, 5), (5, 2), (1, 1)])
async def test_any_size_is_survived_and_the_screen_is_whole_again_after(size: tuple[int, int]) -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        before = driver.screen
        await driver.pilot.resize_terminal(*size)
        await driver.pilot.pause()
        assert len(driver.screen.splitlines()) <= size[1]
        await driver.pilot.resize_terminal(80, 24)
        await driver.until(lambda: driver.screen == before, "the screen as before")


async def test_a_terminal_that_is_too_small_is_told_the_size_needed() -> None:
    async with driving(scripted.whole_sweep, size=(40, 9)) as driver:
        await driver.phase("finished")
        assert "needs 44x10" in driver.screen


async def test_hostile_texts_are_shown_and_steer_nothing() -> None:
    def script(plan: Plan, run: str) -> list[Step]:
        return [
            scripted.started(plan, run),
            scripted.ready(run, HOSTILE),
            scripted.status(run, "measuring", HOSTILE),
            scripted.point(run, 1, "error", error=events.ErrorText(HOSTILE, HOSTILE)),
            events.Warning(run=run, t=1.0, kind="doubt", text=HOSTILE, remedy=HOSTILE),
            scripted.verdict(run, advice=HOSTILE, diagnosis=events.Diagnosis("x", HOSTILE, HOSTILE, "x")),
            scripted.finished(run, "failed", error=events.ErrorText(HOSTILE, HOSTILE), remedy=HOSTILE),
        ]

    async with driving(script, plan=Plan(model=HOSTILE, batch_sizes=(1,)), size=(120, 40)) as driver:
        await driver.phase("failed")
        await driver.shows("[/red] [1, 3, 224] [")
        screens = [driver.screen]
        await driver.press("escape")
        screens.append(driver.screen)
        for key in ("w", "e", "m", "question_mark"):
            await driver.press(key)
            screens.append(driver.screen)
            await driver.press("escape")
        for screen in screens:
            assert "[/red]" in screen
            assert not [char for char in screen if ord(char) < 32 and char != "\n"]


async def test_plain_draws_with_ascii_only() -> None:
    async with driving(scripted.whole_sweep, terminal=replace(TERMINAL, charset="ascii")) as driver:
        await driver.phase("finished")
        screens = [driver.screen]
        for key in ("e", "m", "l", "w", "s", "t", "question_mark", "enter"):
            await driver.press(key)
            screens.append(driver.screen)
            await driver.press("escape")
        odd = {char for screen in screens for char in screen if ord(char) > 126}
        assert odd == set()
        assert "peak 128" in screens[0]


async def test_every_state_is_a_word_on_the_screen() -> None:
    states: list[Any] = ["stable", "noisy", "short", "oom", "error", "skipped", "cancelled"]

    def script(plan: Plan, run: str) -> list[Step]:
        rows = [
            scripted.point(run, size, state) for size, state in zip(plan.batch_sizes, states, strict=True)
        ]
        return [scripted.started(plan, run), scripted.ready(run), *rows, scripted.finished(run)]

    async with driving(script, plan=Plan(batch_sizes=(1, 2, 4, 8, 16, 32, 64))) as driver:
        await driver.phase("finished")
        for state in states:
            assert state in driver.screen


async def test_nothing_is_drawn_when_nothing_happens() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        chart = driver.app.screen.query_one(CurveChart)
        table = driver.app.screen.query_one(ResultsTable)
        await driver.pilot.pause()
        before = (chart.builds, table.cells_written)
        driver.app.runs.tick()
        driver.app.on_deliveries_waiting(None)  # type: ignore[arg-type]
        await driver.pilot.pause()
        assert (chart.builds, table.cells_written) == before
        assert not driver.app._ticker._active.is_set()


async def test_a_new_limit_judges_again_without_a_call_more() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("l")
        await driver.press(*"2ms", "enter")
        limit = driver.app.runs.sweep.record.verdict
        assert limit is not None
        assert limit.limit is not None
        assert (limit.limit.ms, limit.limit.percentile) == (2.0, 99)
        assert len(driver.session.plans) == 1
        assert driver.app.runs.sweep.plan.limit_ms == 2.0


async def test_a_limit_of_nonsense_is_refused_in_place() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("l")
        await driver.press(*"abc", "enter")
        await driver.shows("'abc' is not a time above 0")
        await driver.press("escape")
        assert driver.app.runs.sweep.plan.limit_ms is None


async def test_w_tries_the_remedy_as_a_second_curve() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("w")
        await driver.shows("--allocator keep")
        await driver.press("enter")
        await driver.until(lambda: len(driver.session.plans) == 2)
        await driver.phase("finished")
        assert driver.session.plans[1].allocator == "keep"
        assert driver.app.screen.query_one(CurveChart).curves.previous


async def test_plus_measures_the_row_longer_and_keeps_the_others() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("end", "plus")
        await driver.until(lambda: len(driver.session.priors) == 2)
        assert {known.batch_size: known.state for known in driver.session.priors[1]} == {
            1: "stable",
            8: "stable",
            32: "stable",
            128: "stable",
            512: "measuring",
        }
        assert driver.session.plans[1].precision == 0.01


async def test_a_adds_the_suggested_sizes_and_keeps_the_rows() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("a")
        await driver.until(lambda: len(driver.session.plans) == 2)
        assert driver.session.plans[1].batch_sizes == (1, 8, 32, 64, 128, 256, 512)
        assert [known.batch_size for known in driver.session.priors[1]] == [1, 8, 32, 128, 512]


async def test_p_searches_the_peak_with_what_is_known() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("p")
        await driver.until(lambda: len(driver.session.plans) == 2)
        assert driver.session.plans[1].kind == "peak"
        assert [known.batch_size for known in driver.session.priors[1]] == [1, 8, 32, 128, 512]


async def test_the_palette_finds_an_action_by_a_word_and_does_it() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("colon")
        await driver.press(*"limit")
        await driver.until(lambda: "limit  [l]" in driver.screen)
        await driver.press("enter")
        await driver.shows("Latency limit")


async def test_s_copies_the_table_and_shows_where_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("s", "enter")
        await driver.until(lambda: list(tmp_path.iterdir()))
        (written,) = tmp_path.iterdir()
        assert written.suffix == ".md"
        assert driver.app.clipboard == written.read_text(encoding="utf-8")
        assert "| 128" in driver.app.clipboard
        assert written.name in driver.text("#taken").replace("\n", "")
        await driver.press("enter")
        await driver.until(lambda: len(list(tmp_path.iterdir())) == 2)


async def test_a_folder_that_cannot_be_written_to_is_no_reason_to_lose_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("s", "down", "enter")
        await driver.until(lambda: list(elsewhere.iterdir()))
        assert "images" in driver.app.clipboard


@pytest.mark.parametrize("key", ["e", "m"])
async def test_what_is_pasted_or_was_used_before_cannot_steer_the_terminal(key: str) -> None:
    recent = Settings(recent_models=("evil\x1b[31mred", "evil-but-plain"))
    async with driving(scripted.whole_sweep, settings=recent) as driver:
        await driver.phase("finished")
        await driver.press(key)
        field = driver.app.screen.query(Field).first()
        field.value = "evil"
        field.cursor_position = 4
        if key == "m":
            await driver.shows("evil-but-plain")
        assert "\x1b" not in driver.screen
        field.post_message(Paste("\x1b[31m\x9b\u202e"))
        await driver.until(lambda: len(field.value) > 4)
        assert not [char for char in driver.screen if char in "\x1b\x9b\u202e"]


async def test_the_details_are_there_as_soon_as_there_is_room_for_them() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.pilot.resize_terminal(120, 40)
        await driver.shows("batch 1 ")


async def test_a_race_goes_on_behind_the_sweep_and_the_sweep_says_so() -> None:
    gate = scripted.Gate()

    def halfway(plan: Plan, run: str) -> list[Step]:
        ends: list[Step] = [scripted.race_finished(run), scripted.finished(run)]
        return [scripted.started(plan, run), scripted.ready(run), gate, *ends]

    async with driving(scripted.whole_sweep, halfway) as driver:
        await driver.phase("finished")
        await driver.press("R")
        await driver.until(gate.reached.is_set)
        await driver.press("escape")
        await driver.shows("a race is being run: R shows it")
        assert driver.app.runs.busy
        gate.open()
        await driver.until(lambda: not driver.app.runs.busy)
        await driver.shows("finished")
        await driver.press("R")
        await driver.shows("speed-up")


async def test_the_palette_begins_with_what_the_last_line_names() -> None:
    plain = replace(TERMINAL, charset="ascii")
    async with driving(scripted.whole_sweep, terminal=plain) as driver:
        await driver.phase("finished")
        await driver.press("colon")
        await driver.shows("run  [r]")
        assert "first row" not in driver.screen
        assert not [char for char in driver.screen if ord(char) > 126]


@pytest.mark.parametrize(("size", "every_s"), [((80, 24), 1.0), ((120, 40), 2.0), ((200, 50), 3.0)])
async def test_a_larger_screen_is_drawn_less_often(size: tuple[int, int], every_s: float) -> None:
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(2, gate), size=size) as driver:
        await driver.until(gate.reached.is_set)
        screen = driver.app.screen
        assert isinstance(screen, SweepScreen)
        assert screen._figures_every_s == every_s
        gate.open()
        await driver.phase("finished")
