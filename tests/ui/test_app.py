"""The app's runs and keys: starting, pausing, cancelling, quitting, running again."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import BatchpeakError
from engine.plan import Plan
from tests.ui import scripted_session as scripted
from tests.ui.driving import driving
from tui.messages import DeliveriesWaiting

KEYS_THAT_TERMINALS_TAKE = {"ctrl+a", "ctrl+b", "ctrl+@", "ctrl+space", "ctrl+enter", "ctrl+s", "ctrl+q"}


async def test_the_sweep_starts_by_itself_and_ends_with_its_advice() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        assert "Deploy 32" in driver.text("#advice")
        assert driver.text("#status").startswith("finished")
        assert driver.session.plans == [Plan()]


async def test_rows_are_there_while_the_model_loads() -> None:
    gate = scripted.Gate()

    def loading(plan: Plan, run: str) -> list[scripted.Step]:
        return [
            scripted.started(plan, run),
            scripted.status(run, "starting", "loading"),
            gate,
        ]

    async with driving(loading) as driver:
        await driver.until(gate.reached.is_set)
        await driver.shows("starting")
        assert "512" in driver.screen
        gate.open()


async def test_a_run_can_be_paused_and_goes_on() -> None:
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(2, gate)) as driver:
        await driver.until(gate.reached.is_set)
        await driver.phase("measuring")
        await driver.press("space")
        assert driver.text("#status").startswith("pausing after this block")
        gate.open()
        await driver.phase("paused")
        await driver.shows("paused")
        await driver.press("space")
        await driver.phase("finished")


async def test_x_cancels_and_keeps_what_was_measured() -> None:
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(2, gate)) as driver:
        await driver.until(gate.reached.is_set)
        await driver.press("x")
        await driver.phase("finished")
        await driver.shows("cancelled")
        assert {size for size, point in driver.app.runs.sweep.record.points.items() if point.blocks} >= {1, 8}


async def test_escape_asks_before_it_cancels() -> None:
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(2, gate)) as driver:
        await driver.until(gate.reached.is_set)
        await driver.press("escape")
        await driver.shows("Cancel the run?")
        await driver.press("n")
        assert driver.app.runs.busy
        await driver.press("escape", "y")
        await driver.phase("finished")


async def test_ctrl_c_cancels_first_and_quits_then() -> None:
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(2, gate)) as driver:
        await driver.until(gate.reached.is_set)
        await driver.press("ctrl+c")
        await driver.phase("finished")
        assert driver.app.is_running
        await driver.press("ctrl+c")
        assert driver.app.return_value == 130


async def test_quitting_asks_while_something_is_measured_and_only_then() -> None:
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(2, gate)) as driver:
        await driver.until(gate.reached.is_set)
        await driver.press("q")
        await driver.shows("Quit while measuring?")
        await driver.press("n")
        assert driver.app.is_running
        gate.open()
        await driver.phase("finished")
        await driver.press("q")
        assert driver.app.return_value == 0


async def test_running_again_keeps_the_curve_before_for_comparison() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("r")
        await driver.until(lambda: driver.app.runs.sweep.serial == 2)
        await driver.phase("finished")
        previous = driver.app.runs.sweep.previous
        assert previous is not None
        assert previous.id == "run0001"
        assert driver.app.runs.sweep.record.id == "run0002"


async def test_all_runs_are_made_by_one_thread_that_outlives_them() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("r")
        await driver.until(lambda: driver.app.runs.sweep.serial == 2)
        await driver.phase("finished")
        assert len(driver.session.threads) == 1


async def test_a_run_asked_for_during_another_begins_after_its_last_message() -> None:
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(2, gate), scripted.whole_sweep) as driver:
        await driver.until(gate.reached.is_set)
        driver.app.runs.start(Plan(batch_sizes=(4,)))
        assert driver.app.runs.active.phase == "cancelling"
        await driver.until(lambda: driver.app.runs.sweep.serial == 2)
        await driver.phase("finished")
        assert [plan.batch_sizes for plan in driver.session.plans] == [Plan().batch_sizes, (4,)]
        before = driver.app.runs.sweep.previous
        assert before is not None
        assert before.finished is not None
        assert before.finished.reason == "cancelled"


async def test_a_failure_is_a_dialog_with_the_remedy_and_the_app_goes_on() -> None:
    error = BatchpeakError(
        "no file [/x].py.", title="the model [bold] cannot be loaded", remedy="Check the [path]."
    )
    async with driving(scripted.failing(error), scripted.whole_sweep) as driver:
        await driver.phase("failed")
        await driver.shows("The model [bold] cannot be loaded")
        assert "no file [/x].py." in driver.screen
        assert "Check the [path]." in driver.screen
        await driver.press("enter", "r")
        await driver.until(lambda: driver.app.runs.sweep.serial == 2)
        await driver.phase("finished")


async def test_nothing_measured_is_told_by_the_exit_code() -> None:
    error = BatchpeakError("no file x.py.", title="the model cannot be loaded")
    async with driving(scripted.failing(error)) as driver:
        await driver.phase("failed")
        await driver.press("escape", "q")
        assert driver.app.return_value == 4


async def test_an_unexpected_error_in_the_thread_is_shown_and_the_rows_stay() -> None:
    def script(plan: Plan, run: str) -> list[scripted.Step]:
        return [
            scripted.started(plan, run),
            scripted.ready(run),
            scripted.point(run, 1),
            ValueError("[1, 3, 224] ["),
        ]

    async with driving(script) as driver:
        await driver.phase("failed")
        await driver.shows("ValueError: [1, 3, 224] [")
        assert driver.app.runs.sweep.points()[0].state == "stable"


async def test_a_place_that_cannot_be_written_is_told_and_measuring_goes_on(tmp_path: Path) -> None:
    file_in_the_way = tmp_path / "runs"
    file_in_the_way.write_text("")
    async with driving(scripted.whole_sweep, save_dir=file_in_the_way) as driver:
        await driver.phase("finished")
        assert driver.text("#status").endswith("not saved")
        await driver.shows("the run cannot be saved")


async def test_what_was_measured_is_in_the_run_file(tmp_path: Path) -> None:
    from engine import store

    async with driving(scripted.whole_sweep, save_dir=tmp_path) as driver:
        await driver.phase("finished")
        path = driver.app.runs.sweep.saved_to
        assert path is not None
        assert store.record(path).points == driver.app.runs.sweep.record.points


async def test_every_binding_has_an_id_a_tooltip_and_a_key_that_terminals_pass_on() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        ours = [active.binding for active in driver.app.screen.active_bindings.values() if active.binding.id]
        assert len(ours) >= 20
        for binding in ours:
            assert binding.id
            assert binding.tooltip, binding
            assert binding.key not in KEYS_THAT_TERMINALS_TAKE


async def test_what_comes_while_the_app_is_left_ends_it_no_other_way() -> None:
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(1, gate)) as driver:
        await driver.until(gate.reached.is_set)
    gate.open()
    driver.app.on_deliveries_waiting(DeliveriesWaiting())
    assert driver.app.runs.busy  # nothing was folded in, and nothing drawn


async def test_the_session_is_closed_with_the_app() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
    assert driver.session.closed


@pytest.mark.parametrize("key", ["t", "question_mark", "f1", "colon"])
async def test_help_themes_keys_and_palette_open_and_close_while_measuring(key: str) -> None:
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(2, gate)) as driver:
        await driver.until(gate.reached.is_set)
        await driver.press(key)
        await driver.pilot.pause()
        await driver.press("f1" if key == "f1" else "escape")
        gate.open()
        await driver.phase("finished")
