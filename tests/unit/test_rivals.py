"""The sizes beside each other: levels recovered from blocks, whatever slowed their rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.rivals import Row, fit


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
