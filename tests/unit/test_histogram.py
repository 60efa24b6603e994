"""The small histogram of latencies, and the bars that it and the race are drawn with."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.theming import load_themes
from tui.widgets.bars import bar
from tui.widgets.histogram import bin_edges, histogram

PALETTE = load_themes().get("dark").palette


def counts(lines: list[str]) -> list[int]:
    return [int(line.rpartition(" ")[2].replace(",", "")) for line in lines[:-1]]


def test_every_call_is_counted_once_in_bins_with_round_edges() -> None:
    lines = histogram([5.0 + n / 100 for n in range(100)], 40, PALETTE).plain.split("\n")
    assert [line.split()[0] for line in lines[:-1]] == ["5.0", "5.2", "5.4", "5.6", "5.8"]
    assert counts(lines) == [20, 20, 20, 20, 20]
    assert lines[-1] == "100 calls, longest 5.99 ms"


def test_a_slow_call_does_not_hide_how_the_others_differ() -> None:
    times = [1.5] * 30 + [2.5] * 60 + [900.0]
    lines = histogram(times, 40, PALETTE).plain.split("\n")
    assert [line.split()[0] for line in lines[:-1]] == ["1.4", "1.6", "1.8", "2.0", "2.2", "2.4", "2.6+"]
    assert counts(lines) == [30, 0, 0, 0, 0, 60, 1]
    assert lines[-1] == "91 calls, longest 900 ms"


def test_one_slow_call_among_thousands_is_still_seen() -> None:
    drawn = histogram([1.0] * 5000 + [1.9], 30, PALETTE).plain.split("\n")
    assert "▏ 1" in drawn[-2]
    assert "# 1" in histogram([1.0] * 5000 + [1.9], 30, PALETTE, "ascii").plain.split("\n")[-2]


def test_calls_that_all_took_the_same_time_are_one_bin() -> None:
    assert histogram([4.0] * 10, 30, PALETTE).plain.split("\n")[1:] == ["10 calls, longest 4.00 ms"]


def test_without_calls_it_says_so() -> None:
    assert histogram([], 30, PALETTE).plain == "no calls timed"
    assert histogram([math.nan, math.inf, -1.0], 30, PALETTE).plain == "no calls timed"


@pytest.mark.parametrize("times", [[5e-324], [0.0, 5e-324], [0.0], [1e-12, 3.0]])
def test_times_too_small_for_any_clock_are_drawn_as_nothing(times: list[float]) -> None:
    assert f"{len(times)} call" in histogram(times, 40, PALETTE).plain


@given(
    times=st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=60),
    width=st.integers(16, 90),
    charset=st.sampled_from(["unicode", "ascii"]),
)
def test_any_times_fit_the_width_and_are_all_counted(times: list[float], width: int, charset: str) -> None:
    text = histogram(times, width, PALETTE, charset).plain  # type: ignore[arg-type]
    lines = text.split("\n")
    assert sum(counts(lines)) == len(times)
    assert len(lines) <= 12
    assert charset == "unicode" or text.isascii()
    if max(times) < 1e4 and min(times) >= 0.01:
        assert max(map(len, lines)) <= max(width, 30)


@given(times=st.lists(st.floats(1e-3, 1e5), min_size=1, max_size=80).map(sorted), bins=st.integers(3, 12))
def test_bins_cover_every_time_in_rising_order(times: list[float], bins: int) -> None:
    edges, step, tail = bin_edges(times, bins)
    assert edges == sorted(set(edges))
    assert edges[0] <= times[0]
    # A hair over is the same round number: 1.99999999999 belongs to the bin of 2.
    assert edges[-1] <= times[-1] * (1 + 1e-8)
    assert tail or times[-1] < edges[-1] + 1.001 * step
    assert len(edges) <= bins + 2


def test_labels_of_neighbouring_bins_differ() -> None:
    generator = random.Random(3)
    for _ in range(50):
        middle = 10 ** generator.uniform(-2, 3)
        times = [middle * (1 + generator.gauss(0, 0.01)) for _ in range(200)]
        labels = [line.split()[0] for line in histogram(times, 40, PALETTE).plain.split("\n")[:-1]]
        assert len(set(labels)) == len(labels), labels


@pytest.mark.parametrize(
    ("share", "drawn"),
    [
        (0.0, ""),
        (-1.0, ""),
        (math.nan, ""),
        (0.5, "█████"),
        (0.55, "█████▌"),
        (0.999, "█████████▉"),
        (1.0, "█" * 10),
        (7.0, "█" * 10),
    ],
)
def test_a_bar_is_as_long_as_its_share_and_full_only_at_the_end(share: float, drawn: str) -> None:
    assert bar(share, 10, "unicode") == drawn


def test_a_plain_bar_is_hashes_and_full_only_at_the_end() -> None:
    assert bar(0.999, 10, "ascii") == "#########"
    assert bar(1.0, 10, "ascii") == "##########"
    assert bar(0.001, 10, "ascii") == ""
    assert bar(0.001, 10, "ascii", visible=True) == "#"
    assert bar(0.5, 0, "ascii") == ""
