"""Intervals, percentiles, ratios, limits, outliers and drift, on figures worked out by hand or known exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from engine import stats
from engine.distributions import chi_squared_quantile
from engine.results import Block
from engine.schedule import Sweep
from tests.unit.scripted import Clock, CostCurve, Noise, ScriptedRunner, drive


def block(seconds: float, *, items: int = 100, round_: int = 0, call_ms: Sequence[float] = ()) -> Block:
    calls = max(1, len(call_ms))
    return Block(10, calls=calls, seconds=seconds, call_ms=tuple(call_ms), items=items, round=round_)


def series(seconds: Sequence[float], *, items: int = 100) -> list[Block]:
    return [block(value, items=items, round_=index) for index, value in enumerate(seconds)]


def noisy(count: int, *, sigma: float, seed: int, mean: float = 0.05) -> list[float]:
    return [float(x) for x in mean * np.exp(sigma * np.random.default_rng(seed).standard_normal(count))]


class TestThroughput:
    def test_fewer_than_six_blocks_give_a_figure_but_no_interval(self) -> None:
        for count in range(1, 6):
            blocks = series([0.05] * count)
            assert stats.throughput_interval(blocks) is None
            assert stats.throughput_estimate(blocks) == pytest.approx(2000.0)
        assert stats.throughput_interval(series([0.05] * 6)) is not None

    def test_nothing_measured_gives_no_figure(self) -> None:
        assert stats.throughput_estimate([]) is None
        assert stats.mean_throughput([]) is None
        assert stats.throughput_interval([]) is None

    def test_a_model_that_processed_nothing_has_no_throughput(self) -> None:
        blocks = series([0.05] * 8, items=0)
        assert stats.throughput_estimate(blocks) is None
        assert stats.throughput_interval(blocks) is None
        assert stats.mean_throughput(blocks) is None
        assert stats.ratio_interval(blocks, series([0.05] * 8)) is None

    def test_equal_blocks_give_an_interval_of_no_width(self) -> None:
        interval = stats.throughput_interval(series([0.05] * 8))
        assert interval is not None
        assert (interval.low, interval.high) == pytest.approx((2000.0, 2000.0))

    def test_six_blocks_are_trimmed_by_one_at_each_end(self) -> None:
        times = [4.0, 1.0, 3.0, 100.0, 2.0, 5.0]
        blocks = series(times, items=1)
        assert stats.throughput_estimate(blocks) == pytest.approx(1 / 3.5)
        interval = stats.throughput_interval(blocks)
        assert interval is not None
        # winsorised in measured order: 4 2 3 5 2 5, mean 3.5, squares .25 2.25 .25 2.25 2.25 2.25 = 9.5, h = 4;
        # the products of neighbours sum to -.75 + .75 - .75 - 2.25 - 2.25 = -5.25, so r = -.55 + 1/6 < 0: no widening
        error = math.sqrt(9.5 / (4 * 3))
        margin = stats.t_quantile(0.975, 3) * stats.luck_factor(3) * error / 3.5
        assert interval.high == pytest.approx(math.exp(margin) / 3.5)
        assert interval.low == pytest.approx(math.exp(-margin) / 3.5)

    def test_a_hiccup_in_two_of_twelve_blocks_does_not_move_the_figure(self) -> None:
        times = noisy(12, sigma=0.005, seed=1)
        clean = stats.throughput_estimate(series(times))
        times[4] *= 3.0
        times[9] *= 2.0
        disturbed = stats.throughput_estimate(series(times))
        assert clean is not None
        assert disturbed == pytest.approx(clean, rel=0.005)
        assert stats.mean_throughput(series(times)) == pytest.approx(clean * 12 / 15, rel=0.02)

    def test_a_tail_in_every_block_counts_in_full(self) -> None:
        calls = [1.0] * 49 + [10.0]
        blocks = [block(sum(calls) / 1e3, items=50, round_=i, call_ms=calls) for i in range(10)]
        assert stats.throughput_estimate(blocks) == pytest.approx(50 / 0.059)

    def test_the_first_block_after_warm_up_leaves_the_figure_once_six_others_are_there(self) -> None:
        slow_start = [0.06, *[0.05] * 5]
        assert stats.throughput_interval(series([*slow_start, 0.05])) == stats.throughput_interval(
            series([0.05] * 7)
        )

    def test_blocks_that_resemble_their_neighbours_widen_the_interval(self) -> None:
        values = sorted(noisy(20, sigma=0.03, seed=2))
        mixed = [values[(7 * i) % 20] for i in range(20)]
        lingering = stats.interval_of_times(values)
        by_chance = stats.interval_of_times(mixed)
        assert lingering is not None
        assert by_chance is not None
        assert lingering.relative_half_width > 2 * by_chance.relative_half_width

    def test_alternating_calls_of_5_and_50_ms_give_a_wide_interval_that_is_finite_and_above_zero(
        self,
    ) -> None:
        interval = stats.throughput_interval(series([0.005, 0.05] * 4))
        assert interval is not None
        assert 0.0 < interval.low < interval.estimate < interval.high < math.inf
        assert interval.relative_half_width > 0.5

    @pytest.mark.parametrize("extreme", [1e-9, 1e6])
    def test_extreme_blocks_give_finite_figures(self, extreme: float) -> None:
        interval = stats.throughput_interval(series([extreme, 1e-9, 1e6, 1e-9, 1e6, extreme]))
        assert interval is not None
        assert math.isfinite(interval.low)
        assert math.isfinite(interval.high)
        assert interval.low > 0.0

    def test_settled_is_an_interval_within_the_precision(self) -> None:
        assert not stats.settled(series([0.05] * 5), 0.02)
        assert stats.settled(series([0.05] * 6), 0.02)
        assert not stats.settled(series(noisy(20, sigma=0.1, seed=3)), 0.02)


class TestPercentiles:
    def test_a_percentile_is_the_smallest_time_with_that_share_at_or_under_it(self) -> None:
        assert [stats.percentile([7.0], q) for q in (1, 50, 99, 100)] == [7.0] * 4
        assert [stats.percentile([2.0, 1.0], q) for q in (1, 50, 51, 99, 100)] == [1.0, 1.0, 2.0, 2.0, 2.0]
        ten = [float(x) for x in (3, 1, 4, 10, 5, 9, 2, 6, 8, 7)]
        assert [stats.percentile(ten, q) for q in (10, 11, 50, 90, 91, 99, 100)] == [1, 2, 5, 9, 10, 10, 10]
        hundred = [float(x) for x in range(100, 0, -1)]
        assert [stats.percentile(hundred, q) for q in (1, 50, 90, 95, 99, 99.5, 100)] == [
            1, 50, 90, 95, 99, 100, 100,
        ]  # fmt: skip

    def test_every_percentile_of_every_count_keeps_the_definition(self) -> None:
        for count in (1, 2, 3, 7, 10, 99, 100, 101, 1000):
            times = np.arange(1.0, count + 1.0)
            for q in range(1, 101):
                assert stats.percentile(times, q) == math.ceil(Fraction(q * count, 100))

    def test_a_percentile_of_nothing_is_refused(self) -> None:
        with pytest.raises(ValueError, match="nothing"):
            stats.percentile([], 50)

    def test_percentiles_need_the_calls_that_the_design_names(self) -> None:
        assert [stats.calls_needed(q) for q in (50, 90, 95, 99)] == [8, 29, 59, 299]

    def test_forty_calls_have_a_p90_but_no_p95_or_p99(self) -> None:
        blocks = [block(0.1, call_ms=[float(i + 10 * j) for i in range(1, 11)]) for j in range(4)]
        latency = stats.latency_percentiles(blocks)
        assert (latency.p50, latency.p90) == (20.0, 36.0)
        assert (latency.p95, latency.p99) == (None, None)

    def test_no_calls_have_no_percentiles(self) -> None:
        assert stats.latency_percentiles([]).p50 is None


class TestLimit:
    def test_299_calls_none_over_pass_p99_and_298_do_not(self) -> None:
        assert stats.limit_verdict([1.0] * 299, 2.0, 99) == ("pass", None)
        assert stats.limit_verdict([1.0] * 298, 2.0, 99) == ("unknown", 1)

    def test_a_call_exactly_at_the_limit_is_not_over_it(self) -> None:
        assert stats.limit_verdict([2.0] * 299, 2.0, 99)[0] == "pass"

    def test_half_of_the_calls_over_the_limit_fail(self) -> None:
        assert stats.limit_verdict([1.0, 3.0] * 20, 2.0, 99) == ("fail", None)

    def test_no_calls_need_as_many_as_a_clean_pass_takes(self) -> None:
        assert stats.limit_says(0, 0, 99) == ("unknown", 299)

    @pytest.mark.parametrize(
        ("calls", "over", "percentile"), [(40, 0, 99), (300, 1, 99), (40, 1, 99), (50, 2, 90)]
    )
    def test_the_calls_said_to_be_needed_decide_at_the_present_rate(
        self, calls: int, over: int, percentile: int
    ) -> None:
        says, more = stats.limit_says(calls, over, percentile)
        assert says == "unknown"
        assert more is not None
        total = calls + more
        share = 1 - percentile / 100
        rate = total * over / calls
        then = math.ceil(rate) if rate <= total * share else math.floor(rate)
        assert stats.limit_says(total, then, percentile)[0] != "unknown"

    @pytest.mark.parametrize("seed", range(20))
    def test_what_a_percentile_surely_reaches_is_above_every_limit_that_it_fails(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        times = rng.lognormal(0.0, 0.5, size=int(rng.integers(3, 60)))
        for percentile in (50, 90, 99):
            surely = stats.percentile_at_least(times, percentile)
            assert surely in times
            assert stats.limit_verdict(times, surely, percentile)[0] != "fail"
            assert stats.limit_verdict(times, surely * (1 - 1e-9), percentile)[0] == "fail"

    def test_too_few_calls_tell_nothing_of_what_a_percentile_reaches(self) -> None:
        assert stats.percentile_at_least(np.array([1.0, 2.0, 3.0]), 50) is None
        assert stats.percentile_at_least(np.array([]), 99) is None

    def test_a_rate_that_is_the_limit_itself_is_never_decided(self) -> None:
        assert stats.limit_says(400, 4, 99) == ("unknown", None)

    @pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.93])
    @pytest.mark.parametrize("n", [1, 7, 40])
    def test_binomial_tails_are_exact(self, n: int, p: float) -> None:
        exact = Fraction(p)
        for k in range(-1, n + 2):
            terms = [math.comb(n, i) * exact**i * (1 - exact) ** (n - i) for i in range(n + 1)]
            assert stats.binomial_tail_at_most(k, n, p) == pytest.approx(
                float(sum(terms[: max(k + 1, 0)])), rel=1e-9, abs=1e-12
            )
            assert stats.binomial_tail_at_least(k, n, p) == pytest.approx(
                float(sum(terms[max(k, 0) :])), rel=1e-9, abs=1e-12
            )

    def test_binomial_tails_hold_for_many_calls(self) -> None:
        assert stats.binomial_tail_at_most(0, 30_000, 0.01) == pytest.approx(0.99**30_000, rel=1e-9)
        assert stats.binomial_tail_at_most(300, 30_000, 0.01) == pytest.approx(0.5154, abs=5e-4)
        both = stats.binomial_tail_at_most(310, 30_000, 0.01) + stats.binomial_tail_at_least(
            311, 30_000, 0.01
        )
        assert both == pytest.approx(1.0, abs=1e-9)


class TestRatio:
    def test_what_slows_a_whole_round_cancels(self) -> None:
        slowing = [0.05 * 1.05**i for i in range(10)]
        a = series(slowing, items=220)
        b = series(slowing, items=200)
        ratio = stats.ratio_interval(a, b)
        assert ratio is not None
        assert (ratio.low, ratio.high) == pytest.approx((1.1, 1.1))

    def test_rounds_are_paired_by_number_not_by_place(self) -> None:
        slowing = [0.05 * 1.05**i for i in range(12)]
        a, b = series(slowing, items=220), series(slowing, items=200)
        ratio = stats.ratio_interval(a[2:], b[:10])
        assert ratio is not None
        assert (ratio.low, ratio.high) == pytest.approx((1.1, 1.1))

    def test_sizes_without_common_rounds_are_compared_unpaired(self) -> None:
        a = series(noisy(40, sigma=0.02, seed=4))[:20]
        b = series(noisy(40, sigma=0.02, seed=4))[20:]
        ratio = stats.ratio_interval(a, b)
        assert ratio is not None
        assert ratio.low < 1.0 < ratio.high
        assert ratio.relative_half_width < 0.03

    def test_a_size_that_left_early_does_not_throw_away_the_blocks_of_the_one_that_stayed(self) -> None:
        quiet, loud = noisy(8, sigma=0.002, seed=5), noisy(80, sigma=0.05, seed=6)
        ratio = stats.ratio_interval(series(quiet), series(loud))
        only_shared = stats.ratio_interval(series(quiet), series(loud[:8]))
        assert ratio is not None
        assert only_shared is not None
        assert ratio.relative_half_width < only_shared.relative_half_width / 2

    def test_five_blocks_on_one_side_tell_nothing(self) -> None:
        assert stats.ratio_interval(series([0.05] * 5), series([0.05] * 20)) is None

    def test_more_confidence_is_a_wider_interval(self) -> None:
        a, b = series(noisy(12, sigma=0.02, seed=7)), series(noisy(12, sigma=0.02, seed=8))
        usual, sure = stats.ratio_interval(a, b), stats.ratio_interval(a, b, confidence=0.99)
        assert usual is not None
        assert sure is not None
        assert sure.low < usual.low < usual.high < sure.high

    @pytest.mark.parametrize("drift", [0.0, 0.01])
    def test_the_ratio_of_two_sizes_of_a_sweep_holds_the_truth(self, drift: float) -> None:
        held = 0
        for seed in range(300):
            noise = Noise(call=0.03, block=0.01, drift_per_s=drift)
            runner = ScriptedRunner(Clock(), noise=noise, seed=seed, keep_calls=False)
            sweep = Sweep((32, 128), seed=seed)
            drive(sweep, runner, runner.clock)
            smaller, larger = sweep.measurements()
            ratio = stats.ratio_interval(larger.blocks, smaller.blocks)
            assert ratio is not None
            held += ratio.low <= runner.truth(128) / runner.truth(32) <= ratio.high
        assert held >= 0.95 * 300


class TestOutliers:
    def test_ten_calls_of_a_thousand_at_ten_times_the_median_are_found_and_weighed(self) -> None:
        calls = [1.0] * 990 + [10.0] * 10
        found = stats.outliers([block(1.08, call_ms=calls)])
        assert found is not None
        assert (found.calls, found.of, found.largest_ms, found.median_ms) == (10, 1000, 10.0, 1.0)
        assert found.time_share == pytest.approx(90 / 1090)

    def test_ordinary_noise_has_no_outliers(self) -> None:
        found = stats.outliers([block(1.0, call_ms=noisy(5000, sigma=0.1, seed=9))])
        assert found is not None
        assert found.calls == 0
        assert found.time_share == 0.0

    def test_two_equal_modes_are_not_outliers_of_each_other(self) -> None:
        found = stats.outliers([block(1.0, call_ms=[5.0, 50.0] * 50)])
        assert found is not None
        assert found.calls == 0

    def test_few_calls_have_no_outliers_to_tell(self) -> None:
        assert stats.outliers([block(1.0, call_ms=[1.0, 1.0, 9.0])]) is None


class TestDrift:
    @staticmethod
    def swept(seed: int, drift: float, *, call: float = 0.02) -> list[tuple[Block, ...]]:
        noise = Noise(call=call, block=0.01, drift_per_s=drift)
        runner = ScriptedRunner(
            Clock(), cost=CostCurve(cliff_at=None), noise=noise, seed=seed, keep_calls=False
        )
        sweep = Sweep((8, 32, 128), precision=0.004, seed=seed, size_budget_s=2.0)
        drive(sweep, runner, runner.clock)
        return [m.blocks for m in sweep.measurements()]

    def test_a_slowing_machine_is_told_with_its_rate(self) -> None:
        found = stats.drift(self.swept(1, 0.01))
        assert found is not None
        assert found.significant
        # time between blocks is not seen, so the rate per measured second is a little above that of the clock
        assert -0.015 < found.per_second < -0.009
        assert found.low < found.per_second < found.high
        assert found.total == pytest.approx(math.expm1(found.per_second * found.seconds))

    def test_a_steady_machine_is_rarely_said_to_drift(self) -> None:
        said = sum(bool((d := stats.drift(self.swept(seed, 0.0))) and d.significant) for seed in range(100))
        assert said <= 5

    def test_a_few_rounds_tell_no_drift(self) -> None:
        assert stats.drift([series([0.05, 0.06, 0.07, 0.08, 0.09])]) is None
        assert stats.drift([]) is None

    def test_equal_blocks_do_not_drift(self) -> None:
        found = stats.drift([series([0.05] * 10)])
        assert found is not None
        assert not found.significant


class TestDistributions:
    @pytest.mark.parametrize(
        ("p", "freedom", "table"),
        [
            (0.975, 1, 12.7062), (0.975, 2, 4.3027), (0.975, 3, 3.1824), (0.975, 5, 2.5706), (0.975, 10, 2.2281),
            (0.975, 30, 2.0423), (0.975, 120, 1.9799), (0.95, 7, 1.8946), (0.995, 4, 4.6041), (0.995, 60, 2.6603),
            (0.9995, 8, 5.0413), (0.5, 3, 0.0), (0.025, 5, -2.5706), (0.975, 1000, 1.9623),
        ],
    )  # fmt: skip
    def test_t_quantiles_are_those_of_the_tables(self, p: float, freedom: int, table: float) -> None:
        assert stats.t_quantile(p, freedom) == pytest.approx(table, abs=1e-4)

    def test_the_expansion_joins_the_exact_quantiles(self) -> None:
        exact, expanded = stats.t_quantile(0.995, 200), stats.t_quantile(0.995, 201)
        assert exact > expanded > exact - 2e-4

    @pytest.mark.parametrize(
        ("freedom", "table"), [(3, 1.00517), (5, 2.34253), (10, 6.17908), (17, 12.0023), (60, 50.6406)]
    )
    def test_chi_squared_quantiles_are_within_two_per_cent_of_the_tables(
        self, freedom: int, table: float
    ) -> None:
        assert chi_squared_quantile(0.2, freedom) == pytest.approx(table, rel=0.02)

    def test_impossible_quantiles_are_refused(self) -> None:
        with pytest.raises(ValueError, match="no t quantile"):
            stats.t_quantile(1.0, 3)
        with pytest.raises(ValueError, match="no t quantile"):
            stats.t_quantile(0.9, 0)
        with pytest.raises(ValueError, match="no chi-squared quantile"):
            chi_squared_quantile(0.0, 3)


@pytest.mark.parametrize(
    ("values", "middle"),
    [([3.0], 3.0), ([4.0, 1.0], 2.5), ([9.0, 1.0, 5.0], 5.0), ([8.0, 2.0, 4.0, 1.0], 3.0)],
)
def test_median_is_the_middle_or_the_mean_of_the_two_middle_ones(values: list[float], middle: float) -> None:
    assert stats.median(np.array(values)) == middle


def test_median_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        stats.median(np.array([]))
