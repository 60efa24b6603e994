"""The search for the peak: what it finds on curves with a known truth, and what failures, limits and budgets do to it."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest

from engine.peak import judge
from engine.results import Failure, Prepared
from engine.search import Search
from tests.unit.curves import CURVES, Curve, runner_on
from tests.unit.peak_simulation import (
    LIMIT_CURVES,
    Outcome,
    Setting,
    exhaustive_s,
    limits_for,
    search,
    search_under_limit,
    summary,
)
from tests.unit.scripted import Clock, Noise, ScriptedRunner, drive

OOM = Failure("oom", "out of memory", "tried to allocate 2 GB")


def of_all_curves(setting: Setting, runs: int, curves: tuple[Curve, ...] = CURVES) -> list[Outcome]:
    return [search(curve, setting, seed, best=curve.best()[1]) for curve in curves for seed in range(runs)]


def scripted(
    cost: Callable[[int], float],
    *,
    failures: dict[int, Failure] | None = None,
    late_failures: dict[int, tuple[int, Failure]] | None = None,
    noise: float = 0.01,
) -> ScriptedRunner:
    return ScriptedRunner(
        clock=Clock(),
        cost=cost,
        noise=Noise(call=noise),
        failures=failures or {},
        late_failures=late_failures or {},
    )


def rising(size: int) -> float:
    return 0.002 + 0.0001 * size


@pytest.mark.parametrize("setting", [Setting(0.01), Setting(0.03), Setting(0.03, spikes=True)], ids=str)
def test_the_peak_is_within_two_percent_of_the_best_and_the_ties_hold_it(setting: Setting) -> None:
    found = summary(of_all_curves(setting, 3))
    assert found.good >= 0.95
    assert found.ties_hold >= 0.95
    assert found.knee_good >= 0.95
    assert found.falsely_certain <= 0.05


def test_at_ten_percent_noise_it_cannot_tell_rather_than_be_wrong() -> None:
    names = (
        "two near-equal peaks",
        "cliff after 128",
        "memory ends after 100",
        "10 ms at any size",
        "all tie",
    )
    found = summary(of_all_curves(Setting(0.10), 2, tuple(one for one in CURVES if one.name in names)))
    assert found.falsely_certain <= 0.05
    assert found.certain < 0.5


def test_it_takes_a_fifth_of_the_exhaustive_sweep_at_most() -> None:
    """All powers of two and seven sizes between each two of them, at the same precision."""
    ratios = []
    for curve in CURVES:
        runs = [search(curve, Setting(0.01), seed, best=1.0).measured_s for seed in range(5)]
        ratios.append(statistics.median(runs) / exhaustive_s(curve, Setting(0.01)))
    assert statistics.median(ratios) <= 0.1
    assert max(ratios) <= 0.2


def test_a_pass_or_a_fail_under_a_limit_is_rarely_wrong() -> None:
    found = [
        search_under_limit(curve, limit_ms, seed)
        for curve in LIMIT_CURVES[1:]
        for limit_ms in limits_for(curve)
        for seed in range(2)
    ]
    assert sum(one.false_passes for one in found) <= 0.05 * sum(one.passes for one in found)
    assert sum(one.false_fails for one in found) <= 0.05 * sum(one.fails for one in found)
    assert sum(one.best is not None for one in found) >= 0.9 * len(found)


def test_the_limit_s_answer_has_the_calls_that_its_percentile_needs() -> None:
    runner = scripted(rising)
    strategy = Search(limit_ms=15.0)
    drive(strategy, runner, runner.clock)
    verdict = judge(strategy.measurements(), limit_ms=15.0)
    assert verdict.limit is not None
    assert verdict.limit.best is not None
    assert 96 <= verdict.limit.best <= 128
    answer = next(one for one in strategy.measurements() if one.batch_size == verdict.limit.best)
    assert answer.calls >= 299
    assert verdict.kind == "limit"


def test_a_first_size_that_misses_the_limit_ends_it_soon() -> None:
    runner = scripted(lambda size: 0.010 + 0.001 * size)
    strategy = Search(limit_ms=1.0)
    drive(strategy, runner, runner.clock)
    assert [one.batch_size for one in strategy.measurements()] == [1, 2]
    assert judge(strategy.measurements(), limit_ms=1.0).advice.startswith("None of 2 sizes stays under 1 ms")


def test_out_of_memory_bounds_the_search_and_every_named_size_was_measured() -> None:
    curve = next(curve for curve in CURVES if curve.name == "memory ends after 100")
    runner = runner_on(curve, noise=0.01, seed=1)
    strategy = Search()
    drive(strategy, runner, runner.clock)
    known = {one.batch_size: one for one in strategy.measurements()}
    verdict = judge(known.values())
    assert verdict.peak == 96
    assert verdict.kind == "memory"
    for size in (verdict.peak, verdict.knee, verdict.recommended, *verdict.ties):
        assert size is not None
        assert known[size].blocks
    failed = [size for size, one in known.items() if one.state == "oom"]
    assert failed
    assert min(failed) == 104
    assert max(known) == 128


def test_the_same_error_at_the_first_two_sizes_ends_it() -> None:
    runner = scripted(
        rising,
        failures={
            size: Failure(
                "error", "RuntimeError", f"mat1 and mat2 shapes cannot be multiplied ({size}x784 and 100x10)"
            )
            for size in (1, 2, 4)
        },
    )
    strategy = Search()
    drive(strategy, runner, runner.clock)
    assert [(one.batch_size, one.state) for one in strategy.measurements()] == [(1, "error"), (2, "error")]
    assert "cannot be multiplied" in judge(strategy.measurements()).advice


def test_a_model_for_one_batch_size_only_is_found() -> None:
    sizes = set(range(1, 65)) - {8}
    runner = scripted(
        rising,
        failures={
            size: Failure(
                "error", "RuntimeError", f"shape '[8, 784]' is invalid for input of size {size * 784}"
            )
            for size in sizes
        },
    )
    strategy = Search(max_batch_size=64)
    drive(strategy, runner, runner.clock)
    verdict = judge(strategy.measurements())
    assert verdict.peak == 8
    assert len(next(one for one in strategy.measurements() if one.batch_size == 8).blocks) >= 6


@pytest.mark.parametrize("kind", ["oom", "killed", "forecast"])
def test_a_first_size_that_does_not_fit_leaves_nothing_to_search(kind: str) -> None:
    failure = Failure(kind, "too large", "no room")  # type: ignore[arg-type]
    runner = scripted(rising, failures={1: failure})
    strategy = Search()
    drive(strategy, runner, runner.clock)
    assert [one.batch_size for one in strategy.measurements()] == [1]
    verdict = judge(strategy.measurements())
    assert (verdict.peak, verdict.kind) == (None, "none")


def test_a_killed_worker_is_not_provoked_again_and_the_rest_goes_on() -> None:
    killed = Failure("killed", "killed by the system", "signal 9")
    runner = scripted(rising, failures=dict.fromkeys(range(200, 4097), killed))
    strategy = Search()
    drive(strategy, runner, runner.clock)
    states = {one.batch_size: one.state for one in strategy.measurements()}
    assert [size for size, state in states.items() if state == "error"] == [256]
    verdict = judge(strategy.measurements())
    assert (verdict.peak, verdict.kind) == (128, "memory")


def test_a_size_that_fails_later_keeps_the_others() -> None:
    runner = scripted(rising, late_failures={64: (1, OOM)})
    strategy = Search(max_batch_size=512)
    drive(strategy, runner, runner.clock)
    states = {one.batch_size: one.state for one in strategy.measurements()}
    assert states[64] == "oom"
    verdict = judge(strategy.measurements())
    assert verdict.peak not in (None, 64)
    assert 64 not in verdict.ties


def test_the_ceiling_of_the_budget_is_kept() -> None:
    for budget in (0.5, 3.0, 10.0):
        runner = runner_on(CURVES[1], noise=0.10, seed=0)
        strategy = Search(budget_s=budget)
        drive(strategy, runner, runner.clock)
        # Beyond the ceiling only the block that was being measured, and making one size ready.
        assert runner.clock.now <= budget + 0.25 + 0.5
        assert judge(strategy.measurements()).advice


def test_slow_calls_are_forecast_and_not_begun() -> None:
    runner = scripted(lambda size: 0.5 * size)
    strategy = Search(budget_s=20.0, size_budget_s=10.0)
    drive(strategy, runner, runner.clock)
    assert max(one.batch_size for one in strategy.measurements()) <= 8
    assert runner.clock.now <= 20.0 + 4.0


def test_no_size_above_the_largest_allowed_is_tried() -> None:
    runner = scripted(rising)
    strategy = Search(max_batch_size=100)
    drive(strategy, runner, runner.clock)
    assert max(one.batch_size for one in strategy.measurements()) == 100
    assert judge(strategy.measurements()).kind in ("rising", "plateau")


def test_the_same_seed_tries_the_same_sizes_in_the_same_order() -> None:
    def log(seed: int) -> list[str]:
        runner = scripted(rising)
        drive(Search(seed=seed), runner, runner.clock)
        return runner.log

    assert log(3) == log(3)
    assert log(3) != log(4)


def test_every_size_says_why_it_is_tried_and_why_it_was_left() -> None:
    runner = scripted(lambda size: 0.002 + 0.0001 * size + size * size / 5e6)
    strategy = Search()
    drive(strategy, runner, runner.clock)
    reasons = {one.batch_size: strategy.reason(one.batch_size) for one in strategy.measurements()}
    assert all(reasons.values())
    assert reasons[1].startswith("the smallest size")
    assert "surely slower than" in reasons[2]
    assert any(reason.startswith("beside") for reason in reasons.values())
    assert strategy.ended
    assert all(one.state != "measuring" for one in strategy.measurements())


def test_cancelling_keeps_the_blocks_and_asks_no_more() -> None:
    strategy = Search()
    ask = strategy.ask(0.0)
    assert ask is not None
    assert strategy.ask(0.0) == ask
    strategy.tell_prepared(Prepared(1, 1.0, 10), 0.1)
    runner = scripted(rising)
    block = runner.block(1, 0)
    assert not isinstance(block, Failure)
    strategy.tell(block, 0.2)
    strategy.cancel()
    assert strategy.ask(0.3) is None
    (one,) = strategy.measurements()
    assert (one.state, len(one.blocks)) == ("cancelled", 1)


def test_a_resumed_search_starts_from_what_was_measured() -> None:
    runner = scripted(rising)
    first = Search(budget_s=3.0)
    drive(first, runner, runner.clock)
    before = {one.batch_size: len(one.blocks) for one in first.measurements()}
    again = scripted(rising)
    second = Search(prior=first.measurements())
    drive(second, again, again.clock)
    after = {one.batch_size: len(one.blocks) for one in second.measurements()}
    assert set(before) <= set(after)
    assert all(after[size] >= count for size, count in before.items())
    assert judge(second.measurements()).peak is not None


def test_a_file_for_one_batch_size_is_found_though_each_refusal_reads_the_same() -> None:
    refused = Failure("error", "takes batch size 16 only", "It was exported for 16.", of_size=True)
    runner = scripted(rising, failures={size: refused for size in range(1, 4097) if size != 16})
    strategy = Search()
    drive(strategy, runner, runner.clock)
    assert {one.batch_size: one.state for one in strategy.measurements()}[16] in ("stable", "noisy", "short")
