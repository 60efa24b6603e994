"""The sweep against a known truth: what its intervals hold, and what drift does to its order. Seeded, so exact."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pytest

from engine import stats
from engine.measure import Ask
from engine.results import Block, Failure, Measurement, Prepared
from engine.schedule import Sweep
from tests.unit.coverage import (
    CASES,
    SIZES,
    Coverage,
    PlainInterval,
    mean_and_t,
    median_and_deviation,
    simulate,
    simulate_plain,
)
from tests.unit.scripted import Clock, CostCurve, Noise, ScriptedRunner, drive


@pytest.mark.parametrize(
    ("name", "sweeps"), [("1 % a call, spikes", 1000), ("3 % a call, spikes", 1000), ("3 % a block", 300)]
)
def test_intervals_of_stable_sizes_hold_the_truth_up_to_three_per_cent_noise(name: str, sweeps: int) -> None:
    figures = simulate(CASES[name], sweeps)
    for batch_size in SIZES:
        assert figures[batch_size].stable_share == 1.0
        assert figures[batch_size].holds >= 0.93, (batch_size, figures[batch_size].holds)


def test_intervals_of_stable_sizes_hold_the_truth_at_ten_per_cent_noise() -> None:
    figures = simulate(CASES["10 % a call"], 1000)
    for batch_size in SIZES:
        assert figures[batch_size].stable_share > 0.5
        assert figures[batch_size].holds >= 0.90, (batch_size, figures[batch_size].holds)


def test_intervals_hold_the_truth_when_ten_per_cent_noise_falls_on_whole_blocks() -> None:
    of: Coverage = simulate(CASES["10 % a block"], 400, (8,))[8]
    assert of.stable_share > 0.9
    assert of.holds >= 0.90


def test_a_quiet_size_is_stable_after_few_blocks() -> None:
    figures = simulate(CASES["1 % a call"], 200)
    for batch_size in SIZES:
        assert figures[batch_size].median_blocks <= 8
        assert sorted(figures[batch_size].blocks)[180] <= 10


@pytest.mark.parametrize(
    ("plain", "noise", "at_most", "ours_at_least"),
    [
        (median_and_deviation, Noise(block=0.03), 0.80, 0.93),
        (median_and_deviation, Noise(block=0.10), 0.83, 0.90),
        (median_and_deviation, Noise(block=0.10, lingering=0.3), 0.71, 0.85),
        (mean_and_t, Noise(block=0.03, lingering=0.5), 0.75, 0.83),
    ],
)
def test_a_plain_stop_at_the_first_narrow_interval_holds_the_truth_far_less(
    plain: PlainInterval, noise: Noise, at_most: float, ours_at_least: float
) -> None:
    """Luck, and noise that outlasts a block, are what the sweep's interval is made against."""
    assert simulate_plain(plain, noise, 1000) < at_most
    ours = simulate(noise, 200, (8,))[8]
    assert ours.stable > 50
    assert ours.holds >= ours_at_least


class OneAfterAnother:
    """The plain loop as a strategy: all blocks of a size, then all of the next."""

    def __init__(self, batch_sizes: Sequence[int], blocks: int) -> None:
        self._plan: Iterator[int] = iter([size for size in batch_sizes for _ in range(blocks)])
        self._round = 0
        self.blocks: dict[int, list[Block]] = {size: [] for size in batch_sizes}

    def ask(self, now: float) -> Ask | None:
        size = next(self._plan, None)
        self._round += 1
        return None if size is None else Ask(size, self._round)

    def tell_prepared(self, prepared: Prepared, now: float) -> None:
        pass

    def tell(self, block: Block, now: float) -> None:
        self.blocks[block.batch_size].append(block)

    def tell_failure(self, batch_size: int, failure: Failure, now: float) -> None:
        raise AssertionError(failure)

    def measurements(self) -> Sequence[Measurement]:
        return [Measurement(size, blocks=tuple(blocks)) for size, blocks in self.blocks.items()]

    def reason(self, batch_size: int) -> str:
        return ""

    def cancel(self) -> None:
        raise AssertionError("not cancelled here")


SWEEPS = 1000
EQUAL = (31, 32)
"""Two sizes of the same true throughput (the cost curve has no fixed part) and as many calls a block."""
DRIFTING = Noise(call=0.03, drift_per_s=0.01)


def _runner(seed: int) -> ScriptedRunner:
    cost = CostCurve(fixed_s=0.0, per_item_s=0.0002, cliff_at=None)
    return ScriptedRunner(Clock(), cost=cost, noise=DRIFTING, seed=seed, keep_calls=False)


def _first_ahead(measurements: Sequence[Measurement]) -> bool:
    """Whether the size measured first looks faster; both are equal, so under a slowing machine that is the wrong order."""
    first, second = (stats.throughput_estimate(m.blocks) for m in measurements)
    assert first is not None
    assert second is not None
    return first > second


def test_under_drift_two_equal_sizes_are_ordered_by_chance_only() -> None:
    wrong = told_apart = 0
    for seed in range(SWEEPS):
        runner = _runner(seed)
        sweep = Sweep(EQUAL, seed=seed)
        drive(sweep, runner, runner.clock)
        first, second = sweep.measurements()
        wrong += _first_ahead((first, second))
        ratio = stats.ratio_interval(first.blocks, second.blocks)
        assert ratio is not None
        told_apart += not ratio.low <= 1.0 <= ratio.high
    assert abs(wrong - SWEEPS / 2) <= 1.96 * math.sqrt(SWEEPS) / 2
    assert told_apart <= 0.05 * SWEEPS


def test_under_drift_one_size_after_another_gets_two_equal_sizes_wrong_nearly_always() -> None:
    wrong = 0
    for seed in range(SWEEPS):
        runner = _runner(seed)
        plain = OneAfterAnother(EQUAL, blocks=20)
        drive(plain, runner, runner.clock)
        wrong += _first_ahead(plain.measurements())
    assert wrong >= 0.95 * SWEEPS
