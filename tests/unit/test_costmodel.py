"""The cost line: recovered from noisy times, left where a call surely costs more, and what it forecasts."""

from __future__ import annotations

import random

import pytest

from engine.costmodel import CallTime, fit_cost


def times(ms: dict[int, float], error: float = 0.005) -> list[CallTime]:
    return [CallTime(size, value, error) for size, value in ms.items()]


DOUBLING = [1 << power for power in range(12)]


def test_an_exact_line_is_found_exactly() -> None:
    model = fit_cost(times({size: 2.0 + 0.05 * size for size in DOUBLING}))
    assert model is not None
    assert model.line.fixed == pytest.approx(2.0)
    assert model.line.per_item == pytest.approx(0.05)
    assert model.leaves_line_at is None
    assert model.gain_of_batching == pytest.approx(41.0)
    assert model.fixed_share == pytest.approx(2.0 / 2.05)


def test_the_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    held_fixed = held_item = 0
    for seed in range(300):
        rng = random.Random(seed)
        noisy = {size: (2.0 + 0.05 * size) * (1.0 + rng.gauss(0.0, 0.02)) for size in DOUBLING}
        model = fit_cost(times(noisy, error=0.02))
        assert model is not None
        assert model.line.fixed_bounds is not None
        assert model.line.per_item_bounds is not None
        held_fixed += model.line.fixed_bounds[0] <= 2.0 <= model.line.fixed_bounds[1]
        held_item += model.line.per_item_bounds[0] <= 0.05 <= model.line.per_item_bounds[1]
    assert min(held_fixed, held_item) >= 0.93 * 300


def test_the_size_where_the_cache_ends_leaves_the_line_and_does_not_bend_it() -> None:
    cliff = {size: (2.0 + 0.05 * size) * (1.37 if size >= 512 else 1.0) for size in DOUBLING}
    model = fit_cost(times(cliff))
    assert model is not None
    assert model.leaves_line_at == 512
    assert model.line.per_item == pytest.approx(0.05, rel=1e-6)
    assert (
        "from 512 on each image costs 37 % more than the line: beyond the cache"
        in model.event(because="beyond the cache").text
    )


def test_the_text_says_what_batching_can_bring() -> None:
    model = fit_cost(times({size: 0.68 + 0.32 * size for size in (1, 2, 4, 8)}))
    assert model is not None
    assert model.event().text == "batching can bring at most 3.1 times; 68 % of a single call is fixed cost"


def test_one_odd_size_is_not_the_end_of_the_line() -> None:
    odd = {size: (2.0 + 0.05 * size) * (1.3 if size == 64 else 1.0) for size in DOUBLING}
    model = fit_cost(times(odd))
    assert model is not None
    assert model.leaves_line_at is None


def test_too_few_sizes_or_no_growth_give_no_line() -> None:
    assert fit_cost([]) is None
    assert fit_cost(times({8: 1.0})) is None
    assert fit_cost(times({1: 10.0, 8: 10.0, 32: 10.0})) is None


def test_two_sizes_give_a_line_without_intervals() -> None:
    model = fit_cost(times({1: 1.0, 8: 2.0}))
    assert model is not None
    assert model.line.fixed_bounds is None
    assert model.event().fixed_low_ms is None


def test_a_cost_below_zero_is_not_believed() -> None:
    model = fit_cost(times({size: 0.2 * size**1.15 for size in (1, 2, 4)}))
    assert model is not None
    assert model.line.fixed == 0.0
    assert "next to nothing" in model.event().text


def test_forecasts_follow_what_was_measured() -> None:
    model = fit_cost(times({size: 2.0 + 0.05 * size for size in DOUBLING}))
    assert model is not None
    assert model.forecast_ms(64) == pytest.approx(5.2)
    assert model.forecast_ms(96) == pytest.approx(6.8)
    assert model.forecast_ms(4096) == pytest.approx(2.0 + 0.05 * 4096)
    beyond = fit_cost(times({size: (2.0 + 0.05 * size) * (1.5 if size >= 512 else 1.0) for size in DOUBLING}))
    assert beyond is not None
    assert beyond.forecast_ms(4096) == pytest.approx(2 * beyond.forecast_ms(2048))


def test_sizes_measured_otherwise_are_held_against_the_line_and_not_taken_in() -> None:
    slow = {size: (2.0 + 0.05 * size) * (1.0 if size < 16 else 3.0) for size in (1, 8, 16, 32, 64)}
    model = fit_cost(times(slow), below=16)
    assert model is not None
    assert model.line.sizes == (1, 8)
    assert model.line.fixed == pytest.approx(2.0)
    assert model.leaves_line_at == 16
    assert fit_cost(times(slow), below=8) is None
