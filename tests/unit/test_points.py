"""Points: the figures a row shows, and those it must not show."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from engine import events
from engine.events import Latency, Point, Warned
from engine.points import confirmed_of, point_of
from engine.results import Block, Failure, Measurement, Prepared, State
from engine.schedule import Sweep
from tests.unit.scripted import Noise, ScriptedRunner, drive


def block(
    seconds: float = 0.05,
    *,
    calls: int = 5,
    items: int = 160,
    faults: int | None = None,
    round_: int = 0,
    group: int = 1,
) -> Block:
    times = tuple([seconds * 1e3 / calls] * (calls // group))
    return Block(32, calls, seconds, times, items, group=group, faults=faults, round=round_)


def blocks(count: int, seconds: float = 0.05, **others: Any) -> tuple[Block, ...]:
    return tuple(block(seconds, round_=i, **others) for i in range(count))


def point(measurement: Measurement) -> Point:
    made = point_of(measurement, run="r", t=1.5)
    assert events.decode(events.encode(made)) == made
    return made


def test_a_measured_size_has_all_its_figures() -> None:
    prepared = Prepared(32, cold_ms=80.0, calls_per_block=5, memory_mb=61.0, effective_batch_size=32)
    made = point(Measurement(32, state="stable", prepared=prepared, blocks=blocks(8, faults=10)))
    assert made.throughput == pytest.approx(3200.0)
    assert made.throughput_mean == pytest.approx(3200.0)
    assert (made.throughput_low, made.throughput_high) == pytest.approx((3200.0, 3200.0))
    assert made.ms_per_item == pytest.approx(0.3125)
    assert (made.calls, made.blocks, made.faults_per_call) == (40, 8, 2.0)
    assert (made.cold_ms, made.memory_mb, made.effective_batch_size) == (80.0, 61.0, 32)
    assert (made.run, made.t, made.state, made.error, made.confirmed) == ("r", 1.5, "stable", None, None)


def test_forty_calls_have_a_p50_and_no_p99() -> None:
    latency = point(Measurement(32, state="stable", blocks=blocks(8))).latency_ms
    assert (latency.p50, latency.p90) == pytest.approx((10.0, 10.0))
    assert (latency.p95, latency.p99) == (None, None)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_a_short_size_has_a_figure_and_no_interval(count: int) -> None:
    made = point(Measurement(32, state="short", blocks=blocks(count, calls=1)))
    assert made.throughput == pytest.approx(3200.0)
    assert (made.throughput_low, made.throughput_high) == (None, None)
    assert made.latency_ms == Latency()


def test_a_size_without_blocks_has_no_figures() -> None:
    made = point(Measurement(32))
    assert (made.throughput, made.ms_per_item, made.throughput_mean, made.faults_per_call) == (None,) * 4
    assert (made.state, made.calls, made.blocks, made.latency_ms) == ("measuring", 0, 0, Latency())


@pytest.mark.parametrize("state", ["oom", "error", "skipped"])
def test_a_failed_size_says_why_and_claims_no_figure(state: State) -> None:
    failure = Failure("oom", "out of memory", "Tried to allocate 2.00 GiB.")
    made = point(Measurement(32, state=state, blocks=blocks(7), failure=failure))
    assert made.error == events.ErrorText("out of memory", "Tried to allocate 2.00 GiB.")
    assert (made.throughput, made.throughput_low, made.latency_ms) == (None, None, Latency())
    assert (made.calls, made.blocks) == (35, 7)


def test_throughput_counts_what_was_really_processed() -> None:
    prepared = Prepared(32, cold_ms=1.0, calls_per_block=5, effective_batch_size=1)
    made = point(Measurement(32, state="stable", prepared=prepared, blocks=blocks(8, items=5)))
    assert made.throughput == pytest.approx(100.0)
    assert made.effective_batch_size == 1


def test_a_model_that_answers_for_nothing_has_latency_but_no_throughput() -> None:
    made = point(Measurement(32, state="noisy", blocks=blocks(8, items=0)))
    assert (made.throughput, made.ms_per_item, made.throughput_mean) == (None, None, None)
    assert made.latency_ms.p50 == pytest.approx(10.0)


def test_numbers_that_are_not_finite_do_not_reach_the_event() -> None:
    prepared = Prepared(32, cold_ms=math.nan, calls_per_block=5, memory_mb=math.inf)
    made = point(Measurement(32, state="stable", prepared=prepared, blocks=blocks(8)))
    assert (made.cold_ms, made.memory_mb) == (None, None)


def test_grouped_calls_are_marked() -> None:
    made = point(Measurement(32, state="stable", blocks=blocks(8, calls=50, group=10)))
    assert made.grouped == 10
    assert made.latency_ms.p90 == pytest.approx(1.0)
    assert made.latency_ms.p95 is None


def test_a_failure_says_where_in_the_users_code_it_was_raised() -> None:
    failure = Failure("error", "RuntimeError", "shapes cannot be multiplied.", "net.py:7")
    made = point(Measurement(32, state="error", failure=failure))
    assert made.error is not None
    assert made.error.message == "shapes cannot be multiplied (net.py:7)"


def test_reason_warnings_and_origin_are_passed_on() -> None:
    warned = Warned("other-load", "text", "remedy", {"busy_cores": 1.0})
    made = point_of(
        Measurement(32, kept_from="old"), run="r", t=0.0, reason="between 16 and 64", warnings=[warned]
    )
    assert (made.reason, made.warnings, made.kept_from) == ("between 16 and 64", (warned,), "old")


class TestConfirmed:
    def test_a_confirmation_in_the_interval_agrees(self) -> None:
        confirmed = confirmed_of(Measurement(32, blocks=blocks(8), confirmed=blocks(8, 0.0505)))
        assert confirmed is not None
        assert confirmed.agrees
        assert confirmed.reason == ""
        assert confirmed.throughput == pytest.approx(160 / 0.0505)
        assert confirmed.low is not None

    def test_a_faster_fresh_process_with_fewer_faults_is_explained_by_them(self) -> None:
        measured = Measurement(32, blocks=blocks(8, faults=85_000), confirmed=blocks(8, 0.04, faults=0))
        confirmed = confirmed_of(measured)
        assert confirmed is not None
        assert not confirmed.agrees
        assert confirmed.faults_per_call == 0.0
        assert "25 % more" in confirmed.reason
        assert "0 page faults a call there, 17,000 here" in confirmed.reason
        assert "not explained" not in confirmed.reason

    @pytest.mark.parametrize(("here", "there"), [(50, 55), (0, 85_000)])
    def test_faults_that_are_alike_or_point_the_other_way_explain_nothing(
        self, here: int, there: int
    ) -> None:
        measured = Measurement(32, blocks=blocks(8, faults=here), confirmed=blocks(8, 0.04, faults=there))
        confirmed = confirmed_of(measured)
        assert confirmed is not None
        assert "not explained by page faults" in confirmed.reason

    def test_without_counted_faults_that_is_said(self) -> None:
        confirmed = confirmed_of(Measurement(32, blocks=blocks(8), confirmed=blocks(8, 0.06)))
        assert confirmed is not None
        assert "not counted" in confirmed.reason
        assert "17 % less" in confirmed.reason

    @pytest.mark.parametrize(("here", "there"), [(8, 2), (2, 8)])
    def test_a_figure_without_an_interval_contradicts_nothing(self, here: int, there: int) -> None:
        confirmed = confirmed_of(Measurement(32, blocks=blocks(here), confirmed=blocks(there, 0.06)))
        assert confirmed is not None
        assert confirmed.agrees

    def test_no_confirmation_is_none(self) -> None:
        assert confirmed_of(Measurement(32, blocks=blocks(8))) is None

    def test_two_confirming_blocks_give_a_figure_without_interval(self) -> None:
        confirmed = confirmed_of(Measurement(32, blocks=blocks(8), confirmed=blocks(2)))
        assert confirmed is not None
        assert (confirmed.low, confirmed.high, confirmed.agrees) == (None, None, True)


def test_every_point_of_a_disturbed_sweep_is_a_readable_event() -> None:
    noise = Noise(call=0.1, block=0.2, spike_rate=0.01)
    runner = ScriptedRunner(noise=noise, faults_per_call=lambda size: 7 * size)
    sweep = Sweep((1, 8, 128), size_budget_s=0.6)
    drive(sweep, runner, runner.clock)
    for measurement in sweep.measurements():
        for count in range(len(measurement.blocks) + 1):
            made = point(msgspec.structs.replace(measurement, blocks=measurement.blocks[:count]))
            assert (made.throughput is None) == (count == 0)
            assert (made.throughput_low is None) == (count < 6)
