"""What the interface knows of a run, folded from its deliveries."""

from __future__ import annotations

import msgspec
import pytest

from engine import events
from engine.errors import BatchpeakError, StoreError, WorkerLostError
from engine.plan import Plan
from engine.results import Measurement
from tests.ui import scripted_session as scripted
from tui.state import NOTHING, Change, Ended, Happened, RunView, Saving, clock

PLAN = Plan(batch_sizes=(1, 8, 32))


def begun(plan: Plan = PLAN, serial: int = 1) -> RunView:
    view = RunView(plan)
    view.begin(plan, serial, now=100.0)
    return view


def fold(view: RunView, *told: events.AnyEvent, now: float = 101.0) -> Change:
    change = NOTHING
    for event in told:
        change |= view.take(Happened(view.serial, event), now)
    return change


def test_a_view_without_a_run_is_empty_and_says_what_to_press() -> None:
    view = RunView(PLAN)
    assert (view.phase, view.busy) == ("empty", False)
    assert "r measures" in view.advice()


def test_rows_wait_in_ascending_order_before_anything_is_measured() -> None:
    view = begun()
    assert [(row.batch_size, row.state, row.calls) for row in view.points()] == [
        (1, "measuring", 0),
        (8, "measuring", 0),
        (32, "measuring", 0),
    ]


def test_a_measured_row_replaces_the_waiting_one_and_only_it_is_drawn() -> None:
    view = begun()
    change = fold(view, scripted.started(PLAN, "a"), scripted.ready("a"))
    assert change.model
    assert not change.rows
    change = fold(view, scripted.point("a", 8))
    assert change == Change(rows=frozenset({8}))
    assert [row.state for row in view.points()] == ["measuring", "stable", "measuring"]


def test_rows_are_made_again_only_when_one_changed() -> None:
    view = begun()
    waiting = view.points()
    assert view.points() is waiting
    fold(view, scripted.started(PLAN, "a"), scripted.ready("a"), scripted.point("a", 8))
    measured = view.points()
    assert [row.run for row in measured] == ["a", "a", "a"]
    fold(view, scripted.block("a", 8), scripted.status("a", "measuring", "", 32), scripted.verdict("a"))
    assert view.points() is measured
    fold(view, scripted.point("a", 32))
    assert [row.state for row in view.points()] == ["measuring", "stable", "stable"]
    assert view.points()[:2] == measured[:2]
    assert view.points()[0] is measured[0]
    view.ask_cancel()
    fold(view, scripted.finished("a", "cancelled"))
    view.take(Ended(1), 105.0)
    assert [row.state for row in view.points()] == ["cancelled", "stable", "stable"]
    view.begin(msgspec.structs.replace(PLAN, batch_sizes=(2, 4)), 2, now=200.0)
    assert [(row.batch_size, row.state, row.run) for row in view.points()] == [
        (2, "measuring", ""),
        (4, "measuring", ""),
    ]


def test_a_search_shows_the_sizes_it_tried_and_none_of_the_list() -> None:
    view = begun(msgspec.structs.replace(PLAN, kind="peak"))
    fold(view, scripted.started(view.plan, "a"), scripted.point("a", 64))
    assert [row.batch_size for row in view.points()] == [64]


def test_the_phases_follow_the_run() -> None:
    view = begun()
    assert view.phase == "starting"
    fold(view, scripted.started(PLAN, "a"), scripted.status("a", "starting", "loading"))
    assert view.phase == "starting"
    fold(view, scripted.ready("a"), scripted.status("a", "warming"))
    assert view.phase == "measuring"
    view.ask_pause(True)
    assert view.status(104.0).startswith("pausing after this block")
    fold(view, scripted.status("a", "paused"))
    assert view.phase == "paused"
    view.ask_pause(False)
    fold(view, scripted.status("a", "measuring"))
    assert view.phase == "measuring"
    view.ask_cancel()
    assert view.phase == "cancelling"
    fold(view, scripted.finished("a", "cancelled"))
    view.take(Ended(1), 105.0)
    assert view.phase == "finished"
    assert view.status(200.0).startswith("cancelled · what was measured is kept · 0:05")


def test_the_status_begins_with_the_word_and_carries_a_clock() -> None:
    view = begun()
    assert view.status(163.0) == "starting · loading torch and the model · 1:03"
    fold(view, scripted.started(PLAN, "a"), scripted.ready("a"), scripted.status("a", "measuring", "", 32))
    fold(view, scripted.point("a", 1))
    assert view.status(104.0) == "measuring 32 · 0:04 · 1 of 3 sizes done"


def test_the_clock_stands_still_when_the_run_is_over() -> None:
    view = begun()
    view.take(Ended(1), 110.0)
    assert view.elapsed(500.0) == 10.0


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-1.0, "0:00"), (0.0, "0:00"), (59.9, "0:59"), (61.0, "1:01"), (3_725.0, "1:02:05")],
)
def test_clocks_are_minutes_and_seconds(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def test_late_events_of_an_old_run_change_nothing() -> None:
    view = begun()
    fold(view, scripted.started(PLAN, "a"))
    view.begin(PLAN, 2, now=120.0)
    assert view.take(Happened(1, scripted.point("a", 8)), 121.0) == NOTHING
    assert view.take(Ended(1), 121.0) == NOTHING
    assert view.busy
    assert all(not row.calls for row in view.points())


def test_events_of_another_run_with_the_right_number_are_dropped_too() -> None:
    view = begun()
    fold(view, scripted.started(PLAN, "a"))
    assert fold(view, scripted.point("b", 8)) == NOTHING


def test_the_run_before_stays_for_comparison_and_an_empty_one_does_not_replace_it() -> None:
    view = begun()
    fold(view, scripted.started(PLAN, "a"), scripted.point("a", 8))
    view.take(Ended(1), 105.0)
    view.begin(PLAN, 2, now=120.0)
    assert view.previous is not None
    assert list(view.previous.points) == [8]
    view.take(Ended(2), 121.0)
    view.begin(PLAN, 3, now=130.0)
    assert list(view.previous.points) == [8]


def test_a_failed_run_says_why_and_what_to_do() -> None:
    view = begun()
    fold(
        view,
        scripted.started(PLAN, "a"),
        scripted.finished(
            "a",
            "failed",
            error=events.ErrorText("the model cannot be loaded", "no file x.py."),
            remedy="Check it.",
        ),
    )
    view.take(Ended(1), 105.0)
    assert view.phase == "failed"
    assert view.failure is not None
    assert (view.failure.title, view.failure.remedy) == ("the model cannot be loaded", "Check it.")
    assert "no file x.py." in view.advice()


def test_a_failure_keeps_the_rows_that_were_measured() -> None:
    view = begun()
    fold(view, scripted.started(PLAN, "a"), scripted.ready("a"), scripted.point("a", 8))
    view.take(Ended(1, WorkerLostError("killed by the system.")), 105.0)
    assert view.phase == "failed"
    assert [row.state for row in view.points()] == ["skipped", "stable", "skipped"]


def test_a_completed_run_has_no_failure() -> None:
    view = begun()
    fold(view, scripted.started(PLAN, "a"), scripted.finished("a"))
    view.take(Ended(1), 105.0)
    assert (view.phase, view.failure) == ("finished", None)


def test_a_run_that_is_not_saved_says_so_all_the_time() -> None:
    view = begun()
    view.take(Saving(1, None, StoreError("no space.", title="the run cannot be saved")), 100.5)
    assert view.status(101.0).endswith("not saved")


def test_the_advice_is_the_verdicts_with_its_limit() -> None:
    view = begun()
    fold(view, scripted.started(PLAN, "a"), scripted.ready("a"))
    assert view.advice() == "Too early to say which batch size is best."
    fold(view, scripted.point("a", 32))
    limit = events.Limit(20.0, 99, 32, (), "p99 <= 20 ms: 32 is the largest that passes.")
    fold(view, scripted.verdict("a", advice="Deploy 32.", limit=limit))
    assert view.advice() == "Deploy 32. p99 <= 20 ms: 32 is the largest that passes."


def measured_view() -> RunView:
    view = begun()
    fold(view, scripted.started(PLAN, "a"), scripted.ready("a"))
    for size, state in ((1, "stable"), (8, "noisy"), (32, "oom")):
        fold(view, scripted.prepared("a", size), scripted.block("a", size), scripted.point("a", size, state))
    view.take(Ended(1), 105.0)
    return view


def sizes(kept: tuple[Measurement, ...]) -> list[int]:
    return [known.batch_size for known in kept]


def test_rows_that_did_not_change_can_be_kept_and_say_from_which_run() -> None:
    kept = measured_view().unchanged(msgspec.structs.replace(PLAN, batch_sizes=(1, 8, 64)))
    assert sizes(kept) == [1, 8]
    assert {known.kept_from for known in kept} == {"a"}


def test_nothing_is_kept_of_sizes_that_failed() -> None:
    assert sizes(measured_view().unchanged(PLAN)) == [1, 8]


@pytest.mark.parametrize(
    "change", [{"threads": 1}, {"dtype": "bfloat16"}, {"allocator": "keep"}, {"model": "x.py"}]
)
def test_nothing_is_kept_when_what_changes_figures_changed(change: dict[str, object]) -> None:
    assert measured_view().unchanged(msgspec.structs.replace(PLAN, **change)) == ()


@pytest.mark.parametrize("change", [{"limit_ms": 5.0}, {"precision": 0.01}, {"budget_s": 5.0}, {"seed": 3}])
def test_rows_are_kept_when_only_the_judgement_or_the_time_changed(change: dict[str, object]) -> None:
    assert sizes(measured_view().unchanged(msgspec.structs.replace(PLAN, **change))) == [1, 8]


def test_an_unknown_ending_is_a_failure_with_a_title() -> None:
    view = begun()
    view.take(Ended(1, BatchpeakError("ValueError: x", title="an internal error ended the run")), 101.0)
    assert view.failure is not None
    assert view.failure.title == "an internal error ended the run"


def test_what_the_limit_says_is_said_once_however_it_begins() -> None:
    view = begun()
    limit = events.Limit(2.0, 99, None, (), "none of 6 sizes stays under 2 ms")
    told = "None of 6 sizes stays under 2 ms. The peak without it: 64."
    fold(view, scripted.started(PLAN, "a"), scripted.ready("a"), scripted.point("a", 8))
    fold(view, scripted.verdict("a", advice=told, limit=limit))
    assert view.advice() == told


def test_while_nothing_has_a_figure_yet_no_verdict_is_told() -> None:
    view = begun()
    fold(view, scripted.started(PLAN, "a"), scripted.ready("a"))
    fold(view, scripted.verdict("a", advice="Nothing was measured."))
    assert view.advice() == "Too early to say which batch size is best."


def test_sizes_that_were_never_reached_are_not_counted_as_settled() -> None:
    view = begun()
    fold(view, scripted.started(PLAN, "a"))
    view.take(Ended(1, WorkerLostError("the model cannot be loaded.")), 105.0)
    assert {row.state for row in view.points()} == {"skipped"}
    assert "settled" not in view.status(105.0)
