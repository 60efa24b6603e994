"""Every key is offered when it can do something, and only then; the help says why not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from engine.errors import BatchpeakError
from engine.plan import Plan
from tests.ui import scripted_session as scripted
from tests.ui.driving import Driver, driving
from tests.ui.scripted_session import ScriptedSession
from tui.runs import Runs
from tui.screens.help import Help, impossible
from tui.screens.replay import Replay
from tui.widgets.results_table import ResultsTable

MEASURING = "while measuring"
IDLE = "nothing is being measured"
CANCELLING = "the run is being cancelled"
CLOSED = "the details are closed"

# The reason that stands beside each key that is not offered, in each state of a sweep at 80x24; what is not named is offered.
SWEEP: dict[str, dict[str, str]] = {
    "empty": {
        "limit": "nothing measured yet",
        "save": "nothing measured yet",
        "why": "nothing to explain yet",
        "longer": "nothing measured at this size",
        "add": "no size is suggested",
        "details.down": CLOSED,
        "details.up": CLOSED,
        "pause": IDLE,
        "cancel": IDLE,
        "back": IDLE,
    },
    "starting": {
        **dict.fromkeys(("run", "peak", "limit", "longer", "add"), MEASURING),
        "save": "nothing measured yet",
        "why": "nothing to explain yet",
        "details.down": CLOSED,
        "details.up": CLOSED,
    },
    "measuring": {
        **dict.fromkeys(("run", "peak", "limit", "longer", "add"), MEASURING),
        "details.down": CLOSED,
        "details.up": CLOSED,
    },
    "cancelling": {
        **dict.fromkeys(("run", "peak", "limit", "longer", "add"), MEASURING),
        "details.down": CLOSED,
        "details.up": CLOSED,
        **dict.fromkeys(("pause", "cancel", "back"), CANCELLING),
    },
    "finished": {
        "details.down": CLOSED,
        "details.up": CLOSED,
        **dict.fromkeys(("pause", "cancel", "back"), IDLE),
    },
}
SWEEP["paused"] = SWEEP["measuring"]
SWEEP["failed"] = SWEEP["empty"]
SWEEP["searching"] = SWEEP["starting"] | dict.fromkeys(("details", "sort", "sort-reverse"), "no rows yet")

END_THE_STATE = ("run", "peak", "longer", "add", "race", "cancel", "back", "quit", "interrupt")
"""Keys after which the screen is in another state; the others open and close something, or turn it round."""
NOT_HERE = {"suspend", "redraw"}
"""Do nothing that is seen without a terminal."""


def loading(gate: scripted.Gate) -> scripted.Script:
    """A run that stops before the model is there."""
    return lambda plan, run: [scripted.started(plan, run), scripted.status(run, "starting"), gate]


@asynccontextmanager
async def sweep_in(state: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Driver]:
    """The sweep screen in a state; the session waits at a gate where the state needs it."""
    gate, asked = scripted.Gate(), list[bool]()
    failure = BatchpeakError("no such file", title="the model cannot be loaded")
    scripts = {
        "starting": loading(gate),
        "searching": loading(gate),
        "finished": scripted.whole_sweep,
        "failed": scripted.failing(failure),
    }
    script = scripts.get(state, scripted.stopping_after(2, gate))
    plan = Plan(kind="peak") if state == "searching" else Plan()
    with monkeypatch.context() as patched:
        if state == "empty":
            patched.setattr(Runs, "start", lambda *_: asked.append(True))
        if state == "cancelling":
            patched.setattr(ScriptedSession, "cancel", lambda _: None)  # heard, and not obeyed yet
        async with driving(script, scripted.whole_sweep, plan=plan) as driver:
            try:
                await _reach(state, driver, gate, asked)
                patched.undo()
                yield driver
            finally:
                driver.session.cancel()
                gate.open()


async def _reach(state: str, driver: Driver, gate: scripted.Gate, asked: list[bool]) -> None:
    if state == "empty":
        await driver.until(lambda: asked, "the first run, which is not made here")
        return
    if state in ("finished", "failed"):
        await driver.phase(state)
        if state == "failed":
            await driver.press("escape")
        return
    await driver.until(gate.reached.is_set, "the gate")
    record = driver.app.runs.sweep.record
    if state in ("starting", "searching"):
        await driver.until(lambda: record.status, "the first events")
        return
    await driver.until(lambda: record.verdict, "the first verdict")
    if state == "paused":
        await driver.press("space")
        gate.open()
        await driver.phase("paused")
    if state == "cancelling":
        await driver.press("x")
        await driver.phase("cancelling")


def offered(driver: Driver) -> dict[str, str]:
    """The names of the keys that are offered, and one key of each."""
    found: dict[str, str] = {}
    for key, active in driver.app.screen.active_bindings.items():
        name = active.binding.id
        if active.enabled and name and not name.startswith("table."):
            found.setdefault(name, key)
    return found


def refused(driver: Driver) -> dict[str, tuple[str, str]]:
    """The names of the keys that are not, with one key of each and the reason why."""
    grouped = impossible(driver.app.screen, driver.app)
    return {binding.id or "": (binding.key, why) for why, bindings in grouped.items() for binding in bindings}


def seen(driver: Driver) -> tuple[object, ...]:
    """All that a key may change: what is on the screen, but for the clock, and what is asked of the runs."""
    app = driver.app
    return (
        re.sub(r"\d+:\d\d", "", driver.screen),
        len(app.screen_stack),
        app.runs.serial,
        app.runs.active.pause_asked,
        app.runs.active.cancel_asked,
        app.return_value,
    )


@pytest.mark.parametrize("state", SWEEP)
async def test_what_can_do_nothing_is_not_offered_and_the_reason_is_known(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sweep_in(state, monkeypatch) as driver:
        not_offered = refused(driver)
        assert {name: why for name, (_, why) in not_offered.items()} == SWEEP[state]
        assert not offered(driver).keys() & not_offered.keys()
        before = seen(driver)
        for key, _ in not_offered.values():
            await driver.press(key)
            assert seen(driver) == before, key


@pytest.mark.parametrize("state", SWEEP)
async def test_what_is_offered_does_something(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with sweep_in(state, monkeypatch) as driver:
        for name, key in offered(driver).items():
            if name in END_THE_STATE or name in NOT_HERE:
                continue
            before = seen(driver)
            await driver.press(key)
            await driver.until(lambda: seen(driver) != before, f"an effect of {name}")  # noqa: B023
            if len(driver.app.screen_stack) > 1:
                await driver.press("escape")
            elif name in ("pause", "details", "keys"):
                await driver.press(key)
            assert len(driver.app.screen_stack) == 1


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (state, name)
        for state in ("empty", "starting", "measuring", "cancelling", "finished")
        for name in END_THE_STATE
        if name not in SWEEP[state]
    ],
)
async def test_what_is_offered_and_ends_the_state_does_something(
    state: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sweep_in(state, monkeypatch) as driver:
        before = seen(driver)
        await driver.press(offered(driver)[name])
        await driver.until(lambda: seen(driver) != before, f"an effect of {name}")


async def test_the_help_says_why_not() -> None:
    async with driving(scripted.whole_sweep, size=(120, 80)) as driver:
        await driver.phase("finished")
        await driver.press("question_mark")
        assert isinstance(driver.app.screen, Help)
        _, _, told = driver.screen.partition(
            "Not possible at the moment (all of the details is on the screen):"
        )
        told, _, further = told.partition(f"Not possible at the moment ({IDLE}):")
        assert "Scroll the details down" in told
        assert "Pause between two blocks" in further
        assert "Cancel the run" in further


async def test_details_beside_the_table_need_no_key() -> None:
    async with driving(scripted.whole_sweep, size=(120, 40)) as driver:
        await driver.phase("finished")
        assert refused(driver)["details"][1] == "the details are beside the table"
        assert "details" not in offered(driver)


async def test_details_scroll_where_they_are_longer_than_their_pane() -> None:
    async with driving(scripted.whole_sweep, size=(80, 17)) as driver:
        await driver.phase("finished")
        await driver.press("enter")
        await driver.until(lambda: "details.down" in offered(driver), "J")
        before = driver.screen
        await driver.press("J")
        assert driver.screen != before
        await driver.press("escape")
        assert refused(driver)["details.down"][1] == CLOSED


async def test_a_size_without_figures_cannot_be_measured_longer() -> None:
    def script(plan: Plan, run: str) -> list[scripted.Step]:
        rows = [scripted.point(run, 1), scripted.point(run, 8, "oom")]
        return [scripted.started(plan, run), scripted.ready(run), *rows, scripted.finished(run)]

    async with driving(script, plan=Plan(batch_sizes=(1, 8))) as driver:
        await driver.phase("finished")
        assert "longer" in offered(driver)
        await driver.press("down")
        assert driver.app.screen.query_one(ResultsTable).selected == 8
        assert refused(driver)["longer"][1] == "nothing measured at this size"


RACE: dict[str, dict[str, str]] = {
    "racing": dict.fromkeys(("race.run", "race.edit", "race.replay"), "while racing")
    | dict.fromkeys(("race.slower", "race.faster"), "no replay is going"),
    "replay": dict.fromkeys(("pause", "cancel"), IDLE),
    "failed": dict.fromkeys(("pause", "cancel"), IDLE)
    | {"race.replay": "no race was finished yet"}
    | dict.fromkeys(("race.slower", "race.faster"), "no replay is going"),
}


@pytest.mark.parametrize("state", RACE)
async def test_a_race_offers_what_is_possible(state: str) -> None:
    gate = scripted.Gate()
    scripts: dict[str, scripted.Script] = {
        "racing": lambda plan, run: [scripted.started(plan, run), scripted.ready(run), gate],
        "replay": scripted.whole_race,
        "failed": scripted.failing(BatchpeakError("no such file", title="the model cannot be loaded")),
    }
    async with driving(scripted.whole_sweep, scripts[state]) as driver:
        await driver.phase("finished")
        await driver.press("R")
        await driver.until(lambda: driver.app.runs.race.serial == driver.app.runs.serial == 2, "the race")
        if state == "racing":
            await driver.until(gate.reached.is_set)
        else:
            await driver.phase("failed" if state == "failed" else "finished")
            await driver.press("escape") if state == "failed" else await driver.shows("times slower")
        not_offered = refused(driver)
        assert {name: why for name, (_, why) in not_offered.items()} == RACE[state]
        assert not offered(driver).keys() & not_offered.keys()
        before = seen(driver) if state != "replay" else ()
        for key, _ in not_offered.values():
            await driver.press(key)
            assert state == "replay" or seen(driver) == before, key


def test_a_replay_has_a_slowest_and_a_fastest_speed() -> None:
    replay = Replay.of(scripted.lanes(), 0.0)
    while not (why := replay.why_not(0.5)):
        replay = replay.faster(0.5, 0.0)
    assert (why, replay.words) == ("as slow as it goes", "4096 times slower")
    while not (why := replay.why_not(2.0)):
        replay = replay.faster(2.0, 0.0)
    assert (why, replay.words) == ("as fast as it goes", "4 times faster")


async def test_a_race_that_goes_on_is_not_ended_unasked_from_the_sweep() -> None:
    gate = scripted.Gate()
    async with driving(
        scripted.whole_sweep, lambda plan, run: [scripted.started(plan, run), scripted.ready(run), gate]
    ) as driver:
        await driver.phase("finished")
        await driver.press("R")
        await driver.until(gate.reached.is_set)
        await driver.press("escape")
        told = refused(driver)
        assert {told[name][1] for name in ("run", "peak", "longer", "add")} == {"while a race is run"}
        await driver.press("r")
        assert not driver.app.runs.race.cancel_asked
        gate.open()
