"""The sizes beside each other: levels recovered from blocks, whatever slowed their rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.results import Block
from engine.rivals import Row, apart, fit


def test_blocks_without_any_noise_give_finite_levels() -> None:
    field = fit([Row(size, round_, math.log(size)) for size in (1, 8) for round_ in range(6)])
    assert field is not None
    assert np.isfinite(field.levels).all()
    assert np.isfinite(field.noise).all()
    assert field.level(8) - field.level(1) == pytest.approx(math.log(8))


def test_what_slows_a_whole_round_does_not_move_the_ratio() -> None:
    noise = np.random.default_rng(7).normal(0.0, 0.01, (2, 12))
    slowed = [0.0] * 6 + [-1.0] * 6
    rows = [
        Row(size, round_, level + slowed[round_] + float(noise[place, round_]))
        for place, (size, level) in enumerate(((1, 0.0), (8, 0.5)))
        for round_ in range(12)
        # the larger size was measured in slow rounds more often
        if size == 8 or round_ % 2 == 0 or round_ < 6
    ]
    field = fit(rows)
    assert field is not None
    assert field.level(8) - field.level(1) == pytest.approx(0.5, abs=0.02)


def test_one_interrupted_block_hardly_moves_the_ratio() -> None:
    noise = np.random.default_rng(3).normal(0.0, 0.01, (2, 12))
    rows = [
        Row(size, round_, level + float(noise[place, round_]) - (2.0 if (size, round_) == (1, 3) else 0.0))
        for place, (size, level) in enumerate(((1, 0.0), (8, 0.5)))
        for round_ in range(12)
    ]
    field = fit(rows)
    assert field is not None
    # plain means would be moved by 2 / 12
    assert field.level(8) - field.level(1) == pytest.approx(0.5, abs=0.05)


def test_no_block_no_field() -> None:
    assert fit([]) is None


def blocks_of(size: int, level: float, noise: float, count: int, seed: int) -> list[Block]:
    drawn = np.random.default_rng(seed).normal(level, noise, count)
    return [Block(size, 1, size / math.exp(one), (1.0,), size) for one in drawn.tolist()]


def test_processes_of_their_own_are_compared_by_their_own_noise() -> None:
    quiet = apart({size: blocks_of(size, size / 8, 0.001, 8, size) for size in (8, 16)})
    loud = apart({size: blocks_of(size, size / 8, 0.1, 8, size) for size in (8, 16)})
    assert quiet is not None
    assert loud is not None
    assert loud.half_width(8, 16, 0.05) > 30.0 * quiet.half_width(8, 16, 0.05)
    assert apart({8: blocks_of(8, 1.0, 0.01, 5, 0)}) is None


def test_intervals_of_fresh_processes_hold_the_truth_as_often_as_they_say() -> None:
    held = 0
    for seed in range(400):
        field = apart({8: blocks_of(8, 1.0, 0.01, 7, seed), 16: blocks_of(16, 1.3, 0.05, 9, seed + 1000)})
        assert field is not None
        held += abs(field.difference(16, 8) - 0.3) <= field.half_width(16, 8, 0.025)
    assert held >= 0.95 * 400


def test_a_fresh_figure_beside_one_of_the_run_carries_the_doubt_of_both() -> None:
    noise = np.random.default_rng(1).normal(0.0, 0.02, (3, 12))
    run = fit(
        [
            Row(size, round_, place * 0.1 + float(noise[place, round_]))
            for place, size in enumerate((8, 16, 32))
            for round_ in range(12)
        ]
    )
    assert run is not None
    held = {16: blocks_of(16, 0.5, 0.05, 8, 4), 32: blocks_of(32, 0.4, 0.05, 8, 5)}
    fresh = apart(held)
    assert fresh is not None
    mixed = run.with_fresh(fresh, (16, 32))
    assert mixed.level(16) == fresh.level(16)
    assert mixed.level(8) == run.level(8)
    a, b = float(fresh.noise[0]) / math.sqrt(8), float(run.noise[0]) / math.sqrt(12)
    half = mixed.half_width(16, 8, 0.025)
    assert 1.9 * math.hypot(a, b) < half < 3.0 * math.hypot(a, b)
    # Two fresh ones stand as they do in their own field; two of the run as they do in the run.
    assert mixed.half_width(16, 32, 0.025) == pytest.approx(fresh.half_width(16, 32, 0.025))
    one = run.with_fresh(fresh, (32,))
    assert one.half_width(8, 16, 0.025) == pytest.approx(run.half_width(8, 16, 0.025))
