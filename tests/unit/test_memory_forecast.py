"""Which size is looked at before a large one is forecast: neither a refusal nor a try by mistake."""

from __future__ import annotations

import pytest

from engine.results import Prepared
from engine.runner import FAR, PROBE_SIZE, forecast_mb, next_probe


def known(**memory: float | None) -> dict[int, Prepared]:
    """Sizes as s1=, s8=, with the memory of their call, MB."""
    return {int(name[1:]): Prepared(int(name[1:]), 1.0, 1, memory_mb=value) for name, value in memory.items()}


def test_memory_grows_in_proportion_from_the_nearest_smaller_size() -> None:
    assert forecast_mb(known(s1=10.0, s8=20.0, s64=900.0), 32) == pytest.approx(80.0)
    assert forecast_mb(known(s64=900.0), 32) is None


def test_large_inputs_of_an_unknown_model_are_preceded_by_a_tiny_batch() -> None:
    assert next_probe({}, 4096, inputs_mb=100.0, usable_mb=1000.0) == PROBE_SIZE
    assert next_probe({}, 4096, inputs_mb=10.0, usable_mb=1000.0) is None


def test_a_refusal_that_rests_on_a_far_smaller_size_is_looked_into_first() -> None:
    found = known(s1=12.0)
    assert next_probe(found, 512, inputs_mb=2.0, usable_mb=1000.0) == 8
    found |= known(s8=13.0)
    assert next_probe(found, 512, inputs_mb=2.0, usable_mb=1000.0) is None
    assert (forecast_mb(found, 512) or 0.0) < 1000.0


def test_a_tiny_size_without_measurable_memory_does_not_let_a_huge_one_pass() -> None:
    found = known(s1=0.0)
    sizes = []
    while (probe := next_probe(found, 2**20, inputs_mb=3000.0, usable_mb=14_000.0)) is not None:
        sizes.append(probe)
        found |= known(**{f"s{probe}": 0.05 * probe if probe > 100 else 0.0})
    assert sizes == [8, 64, 512, 4096, 32_768]
    assert FAR * max(found) >= 2**20
    assert (forecast_mb(found, 2**20) or 0.0) > 14_000.0


def test_no_probe_is_itself_larger_than_what_fits() -> None:
    assert next_probe(known(s1=200.0), 512, inputs_mb=2.0, usable_mb=1000.0) is None
