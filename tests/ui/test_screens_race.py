"""The race screen: real progress, the result in words and figures, the replay from recorded times."""

from __future__ import annotations

import msgspec
import pytest

from engine import events
from engine.errors import BatchpeakError
from engine.plan import Plan
from tests.ui import scripted_session as scripted
from tests.ui.driving import Driver, driving
from tests.ui.scripted_session import Gate, Step
from tui.screens.race import race_advice, result_text
from tui.screens.race_edit import race_title
from tui.screens.replay import Replay


async def raced(driver: Driver) -> None:
    await driver.phase("finished")
    await driver.press("R")
    await driver.until(lambda: driver.app.runs.race.record.race is not None and not driver.app.runs.busy)


async def test_the_race_starts_by_itself_and_shows_its_result() -> None:
    async with driving(scripted.whole_sweep, scripted.whole_race) as driver:
        await raced(driver)
        for text in (
            "256 single calls against one call of 256",
            "speed-up 9.93×",
            "9.71 to 10.20, 95 % interval",
            "same answers: yes",
            "first answer ms",
            "13.4",
        ):
            await driver.shows(text)
        assert driver.session.plans[1].kind == "race"


async def test_the_bars_show_real_progress_while_it_runs() -> None:
    gate = Gate()

    def halfway(plan: Plan, run: str) -> list[Step]:
        return [
            scripted.started(plan, run),
            scripted.ready(run),
            events.RaceProgress(run=run, t=1.0, lane=0, done=128, total=256, round=1),
            scripted.status(run, "measuring", "racing"),
            gate,
            scripted.race_finished(run),
            scripted.finished(run),
        ]

    async with driving(scripted.whole_sweep, halfway) as driver:
        await driver.phase("finished")
        await driver.press("R")
        await driver.until(gate.reached.is_set)
        await driver.shows("128 of 256")
        assert "round 2" in driver.screen
        assert "speed-up" not in driver.screen
        gate.open()
        await driver.shows("speed-up")


async def test_the_sweep_is_untouched_by_a_race_and_comes_back_with_escape() -> None:
    async with driving(scripted.whole_sweep, scripted.whole_race) as driver:
        await raced(driver)
        await driver.press("escape")
        await driver.shows("peak 128")
        assert driver.app.runs.sweep.record.id == "run0001"


async def test_the_race_is_replayed_in_slow_motion_and_its_speed_can_be_changed() -> None:
    async with driving(scripted.whole_sweep, scripted.whole_race) as driver:
        await raced(driver)
        await driver.until(lambda: driver.text("#status").startswith("replay"))
        before = driver.text("#status")
        await driver.press("right")
        assert driver.text("#status") == before.replace("64 times", "32 times")
        await driver.press("left", "left")
        assert driver.text("#status") == before.replace("64 times", "128 times")


async def test_the_race_can_be_edited_and_a_bad_number_is_refused_in_place() -> None:
    async with driving(scripted.whole_sweep, scripted.whole_race) as driver:
        await raced(driver)
        await driver.press("e")
        await driver.press("end", *["backspace"] * 3, *"abc", "enter")
        await driver.shows("'abc' is not a whole number")
        await driver.press(*["backspace"] * 3, *"64", "tab", "end", "backspace", "8", "enter")
        await driver.until(lambda: len(driver.session.plans) == 3)
        assert (driver.session.plans[2].images, driver.session.plans[2].lane_batch_size) == (64, 8)


async def test_why_the_race_cannot_run_is_said() -> None:
    error = BatchpeakError(
        "calls of 256 failed: out of memory.", title="the race cannot be run", remedy="Race fewer images."
    )
    async with driving(scripted.whole_sweep, scripted.failing(error)) as driver:
        await driver.phase("finished")
        await driver.press("R")
        await driver.phase("failed")
        await driver.shows("Race fewer images.")
        await driver.press("escape", "escape")
        await driver.shows("peak 128")


@pytest.mark.parametrize(
    ("images", "size", "title"),
    [
        (256, 1, "256 single calls against one call of 256"),
        (256, 8, "32 calls of 8 against one call of 256"),
        (10, 4, "3 calls of 4 against one call of 10"),
        (1, 1, "1 single call against one call of 1"),
    ],
)
def test_the_title_says_what_is_raced(images: int, size: int, title: str) -> None:
    assert race_title(images, size) == title


def test_the_replay_follows_the_recorded_times() -> None:
    lanes = scripted.lanes()
    replay = Replay.of(lanes, now=100.0)
    assert replay.words == "64 times slower"
    first, second = replay.moments(100.0)
    assert (first.done, second.done) == (0, 0)
    # 0.5, 0.51, 0.52, 0.53, 0.54 ms: three calls are over at 1.53 ms
    first, second = replay.moments(100.0 + 0.00154 * 64)
    assert (first.done, second.done) == (3, 0)
    first, second = replay.moments(100.0 + 0.0135 * 64)
    assert (second.done, second.ms) == (256, 13.4)
    assert not replay.over(100.0 + 0.0135 * 64)
    assert replay.over(100.0 + (lanes[0].total_ms + 0.1) / 1000 * 64)


def test_a_change_of_speed_goes_on_from_the_same_moment() -> None:
    replay = Replay.of(scripted.lanes(), now=0.0)
    faster = replay.faster(2.0, now=3.0)
    assert faster.at_ms(3.0) == pytest.approx(replay.at_ms(3.0))
    assert faster.at_ms(4.0) - faster.at_ms(3.0) == pytest.approx(2 * (replay.at_ms(4.0) - replay.at_ms(3.0)))


def test_long_races_are_not_slowed_down() -> None:
    lane = events.Lane("a", 1, 1, 9_000.0, 9_000.0, 9_000.0, (9_000.0,))
    assert Replay.of((lane, lane), now=0.0).words == "real time"


def test_no_winner_is_named_when_the_interval_holds_one() -> None:
    first, second = scripted.lanes()
    race = events.RaceFinished(
        run="a",
        t=1.0,
        lanes=(first, second),
        speedup=1.02,
        speedup_low=0.97,
        speedup_high=1.08,
        outputs_agree=True,
    )
    assert race_advice(race, "image").startswith("The measurements cannot tell which lane is faster.")
    assert "speed-up about 1.0" in result_text(race, "image").plain


def test_a_speed_up_without_an_interval_is_no_result_yet() -> None:
    race = msgspec.structs.replace(scripted.race_finished("a"), speedup_low=None, speedup_high=None, rounds=2)
    shown = result_text(race, "image")
    assert f"speed-up about {race.speedup:.1f}" in shown.plain
    assert not [span for span in shown.spans if "about" in shown.plain[span.start : span.end] and span.style]
    sure = result_text(scripted.race_finished("a"), "image")
    assert "about" not in sure.plain
