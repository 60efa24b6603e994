"""Which sizes are worth measuring next: few, sensible across any gap, and each with its reason."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.peak import judge
from engine.plan import MAX_BATCH_SIZE
from engine.results import Failure, Measurement
from engine.suggest import MOST, STEP, STEP_ABOVE, spread
from tests.unit.test_peak import measured


def suggested(ms: dict[int, float], **more: float) -> dict[int, str]:
    known = [measured(size, value, calls=2, noise=0.001) for size, value in ms.items()]
    return {one.batch_size: one.reason for one in judge(known, **more).suggestions}  # type: ignore[arg-type]


def test_a_huge_gap_below_the_peak_is_split_before_anything_larger_is_tried() -> None:
    found = suggested({1: 1.0, 100_000: 20_000.0})
    assert list(found) == [16, 320, 5624, 200_000]
    assert found[320] == "the peak may lie between 1 and 100000"
    assert found[200_000] == "throughput still rises at 100000, the largest size measured"


def test_a_huge_gap_above_the_peak_is_split_by_ratio() -> None:
    found = suggested({1: 1.0, 2: 1.4, 3: 1.8, 5000: 9000.0})
    assert list(found) == [16, 120, 784]
    assert set(found.values()) == {"the peak may lie between 3 and 5000"}


@pytest.mark.parametrize(
    ("low", "high", "sizes"),
    [
        (1, 2, []),
        (1, 3, [2]),
        (8, 32, [16]),
        (16, 24, []),
        (100, 200, [152]),
        (16, 4096, [64, 256, 1024]),
        (1, 2**31 - 1, [216, 46344, 9975792]),
    ],
)
def test_between_two_sizes_those_are_tried_that_part_them_evenly(
    low: int, high: int, sizes: list[int]
) -> None:
    assert spread(low, high) == sizes


def test_beyond_the_ends_sizes_are_multiples_of_eight_too() -> None:
    assert list(suggested({25: 5.0, 36: 6.0}))[:2] == [72, 144]
    falling = suggested({100: 10.0, 140: 20.0})
    assert list(falling)[:2] == [48, 24]
    assert falling[24] == "if smaller sizes go on being faster"
    oom = Failure("oom", "out of memory", "tried to allocate 2 GB")
    nothing = judge([Measurement(100, state="oom", failure=oom)]).suggestions
    assert [one.batch_size for one in nothing] == [24, 48]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(1, 40), st.integers(1, MAX_BATCH_SIZE)), st.sampled_from((0.9, 1.0, 1.2))
        ),
        min_size=1,
        max_size=6,
        unique_by=lambda pair: pair[0],
    ),
    st.sampled_from((None, 1.0, 1000.0)),
    st.booleans(),
)
def test_suggestions_are_few_new_and_reasoned(
    sizes: list[tuple[int, float]], limit_ms: float | None, last_fails: bool
) -> None:
    known = [measured(size, size**power * 0.1 + 0.1, calls=2) for size, power in sorted(sizes)]
    if last_fails:
        oom = Failure("oom", "out of memory", "tried to allocate 2 GB")
        known[-1] = Measurement(known[-1].batch_size, state="oom", failure=oom)
    found = judge(known, limit_ms=limit_ms).suggestions
    assert len(found) <= MOST
    assert len({one.batch_size for one in found}) == len(found)
    assert not {one.batch_size for one in found} & {size for size, _ in sizes}
    for one in found:
        assert 1 <= one.batch_size <= MAX_BATCH_SIZE
        assert one.batch_size <= STEP_ABOVE or one.batch_size % STEP == 0
        assert one.reason
