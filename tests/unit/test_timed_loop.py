"""The timed loop against a clock that moves only when the scripted model works: every figure is exact."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, cycle, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.worker.inbox import StopFlag, StopRequested
from engine.worker.loop import (
    BLOCK_NS,
    GROUP_BELOW_NS,
    Calibration,
    Timed,
    approach,
    calibrate,
    lengthened,
    quiet_collector,
    time_block,
    time_once,
    warm_up,
)

MS = 1_000_000
SECOND = 1000 * MS


class Bench:
    """A clock, and a model whose calls move it by the given times."""

    def __init__(self, call_ns: Iterable[int], after: Callable[[int], None] = lambda calls: None) -> None:
        self.now = 0
        self.calls = 0
        self.readings = 0
        self._times: Iterator[int] = iter(call_ns)
        self._after = after

    def clock(self) -> int:
        self.readings += 1
        return self.now

    def step(self) -> str:
        self.now += next(self._times)
        self.calls += 1
        self._after(self.calls)
        return "output"


def test_the_cold_call_is_timed_alone() -> None:
    bench = Bench([SECOND, 5 * MS])
    assert time_once(bench.step, bench.clock) == ("output", SECOND)
    assert bench.calls == 1


@pytest.mark.parametrize(
    ("call_ns", "calls"),
    [(MS, 200), (5 * MS, 40), (150 * MS, 2), (SECOND, 2), (6 * SECOND, 1)],
)
def test_warm_up_takes_a_fifth_of_a_second_and_two_calls_unless_one_outlasts_its_ceiling(
    call_ns: int, calls: int
) -> None:
    bench = Bench(repeat(call_ns))
    warm = warm_up(bench.step, bench.clock, StopFlag())
    assert (warm.calls, warm.elapsed_ns, warm.call_ns) == (calls, calls * call_ns, call_ns)


def test_warm_up_goes_on_while_the_last_call_is_far_over_those_before() -> None:
    bench = Bench(chain(repeat(20 * MS, 9), [40 * MS], repeat(20 * MS)))
    assert warm_up(bench.step, bench.clock, StopFlag()).calls == 11


def test_warm_up_of_a_model_that_never_settles_ends_at_its_ceiling() -> None:
    bench = Bench(MS * 2**index for index in range(64))
    warm = warm_up(bench.step, bench.clock, StopFlag())
    assert (warm.calls, warm.elapsed_ns) == (11, (2**11 - 1) * MS)


def test_the_typical_call_after_warm_up_is_not_moved_by_slow_first_calls() -> None:
    bench = Bench(chain(repeat(100 * MS, 2), repeat(MS)))
    assert warm_up(bench.step, bench.clock, StopFlag()).call_ns == 100 * MS
    bench = Bench(chain(repeat(50 * MS, 2), repeat(4 * MS)))
    assert warm_up(bench.step, bench.clock, StopFlag()).call_ns == 4 * MS


def test_warm_up_stops_between_calls() -> None:
    flag = StopFlag()

    def raise_flag(calls: int) -> None:
        flag.up = calls == 3

    bench = Bench(repeat(MS), raise_flag)
    with pytest.raises(StopRequested):
        warm_up(bench.step, bench.clock, flag)
    assert bench.calls == 3


@pytest.mark.parametrize(
    ("call_ns", "expected"),
    [
        (10_000, Calibration(1000 * 5, 5)),
        (49_999, Calibration(500 * 2, 2)),
        (50_000, Calibration(1000, 1)),
        (5 * MS, Calibration(10, 1)),
        (40 * MS, Calibration(1, 1)),
        (60 * SECOND, Calibration(1, 1)),
    ],
)
def test_a_block_is_calibrated_to_fifty_milliseconds_or_one_call(call_ns: int, expected: Calibration) -> None:
    assert calibrate(call_ns) == expected


@given(st.integers(1, 10**12))
def test_no_timed_group_is_shorter_than_what_reading_the_clock_allows(call_ns: int) -> None:
    chosen = calibrate(call_ns)
    assert chosen.group * call_ns >= GROUP_BELOW_NS
    assert chosen.calls >= chosen.group
    assert chosen.calls % chosen.group == 0
    assert chosen.calls * call_ns <= max(1.5 * BLOCK_NS, call_ns)


@pytest.mark.parametrize(
    ("call_ns", "switched", "calls"),
    [
        (MS, False, 10),
        (MS, True, 10),
        (300_000, False, 34),
        (4 * MS, False, 3),
        # Long against the 10 ms: only after another size.
        (10 * MS, False, 0),
        (10 * MS, True, 1),
        (99 * MS, True, 1),
        (100 * MS, True, 0),
        (SECOND, False, 0),
    ],
)
def test_a_block_is_approached_by_untimed_calls(call_ns: int, switched: bool, calls: int) -> None:
    bench = Bench(repeat(call_ns))
    approach(bench.step, calibrate(call_ns), call_ns, bench.clock, StopFlag(), switched=switched)
    assert bench.calls == calls


def test_the_approach_is_no_longer_than_a_block_when_calls_have_become_shorter() -> None:
    bench = Bench(repeat(0))
    approach(bench.step, Calibration(50, 1), MS, bench.clock, StopFlag(), switched=False)
    assert bench.calls == 50


def test_the_approach_is_abandoned_when_the_flag_goes_up() -> None:
    flag = StopFlag()

    def raise_flag(calls: int) -> None:
        flag.up = calls == 3

    bench = Bench(repeat(MS), raise_flag)
    with pytest.raises(StopRequested):
        approach(bench.step, Calibration(50, 1), MS, bench.clock, flag, switched=False)
    assert bench.calls == 3


def test_every_call_of_a_block_has_its_own_time_and_they_add_up() -> None:
    bench = Bench([3 * MS, MS, 2 * MS])
    timed = time_block(bench.step, Calibration(3, 1), bench.clock, StopFlag())
    assert timed == Timed(6 * MS, (3 * MS, MS, 2 * MS))
    assert bench.readings == 4


def test_short_calls_are_timed_in_groups_with_one_reading_each() -> None:
    bench = Bench(cycle([10_000, 30_000]))
    timed = time_block(bench.step, Calibration(12, 4), bench.clock, StopFlag())
    assert timed == Timed(240_000, (80_000, 80_000, 80_000))
    assert (bench.calls, bench.readings) == (12, 4)


@pytest.mark.parametrize("group", [1, 2])
def test_a_block_on_a_machine_that_has_become_far_slower_ends_early(group: int) -> None:
    bench = Bench(repeat(100 * MS))
    timed = time_block(bench.step, Calibration(50 * group, group), bench.clock, StopFlag())
    assert bench.calls == 6
    assert timed == Timed(600 * MS, (group * 100 * MS,) * (6 // group))


def test_a_clock_that_stands_still_gives_no_zero_times() -> None:
    bench = Bench(repeat(0))
    timed = time_block(bench.step, Calibration(2, 1), bench.clock, StopFlag())
    assert timed == Timed(1, (1, 1))


@pytest.mark.parametrize("group", [1, 2])
def test_a_block_is_abandoned_at_the_next_call_boundary(group: int) -> None:
    flag = StopFlag()

    def raise_flag(calls: int) -> None:
        flag.up = flag.up or calls == 2 * group

    bench = Bench(repeat(MS), raise_flag)
    with pytest.raises(StopRequested):
        time_block(bench.step, Calibration(100 * group, group), bench.clock, flag)
    assert bench.calls == 2 * group


def test_no_garbage_is_collected_within_a_block_and_the_collector_is_on_again_after_a_failure() -> None:
    within: list[bool] = []

    def failing() -> None:
        within.append(gc.isenabled())
        raise ValueError("the model's own words")

    assert gc.isenabled()
    with pytest.raises(ValueError, match="own words"), quiet_collector():
        time_block(failing, Calibration(2, 1), Bench([]).clock, StopFlag())
    assert within == [False]
    assert gc.isenabled()


def test_a_size_that_was_calibrated_on_a_busy_machine_gets_longer_blocks_and_never_shorter_ones() -> None:
    assert lengthened(Calibration(1, 1), Timed(MS, (MS,))) == Calibration(50, 1)
    assert lengthened(Calibration(20, 5), Timed(MS, (MS,))) == Calibration(1000, 5)
    assert lengthened(Calibration(10, 1), Timed(30 * MS, ())) == Calibration(10, 1)
    assert lengthened(Calibration(10, 1), Timed(SECOND, ())) == Calibration(10, 1)
