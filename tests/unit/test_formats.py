"""Figures as text: the digits shown are those that the interval supports."""

from __future__ import annotations

import pytest

from tui import formats


@pytest.mark.parametrize(
    ("value", "half", "shown"),
    [
        (21373.0, 256.0, "21,370"),
        (17538.0, 508.0, "17,500"),
        (17538.0, 5080.0, "18,000"),
        (17538.0, 25.0, "17,538"),
        (17538.123, 0.0001, "17,538"),
        (6139.4, 67.0, "6,140"),
        (99.96, 1.2, "100.0"),
        (9.876, 0.25, "9.88"),
        (0.16327, 0.0021, "0.1633"),
        (0.16327, 0.21, "0.16"),
        (5.0, 50.0, "5"),
        (1000.0, 1.0, "1,000.0"),
        (1234.5678, 0.0, "1,234.6"),
    ],
)
def test_no_more_digits_than_the_interval_supports(value: float, half: float, shown: str) -> None:
    assert formats.throughput(value, value - half, value + half) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(17538.0, "17,500"), (163.2, "163"), (0.01234, "0.0123"), (0.0, "0")]
)
def test_three_digits_without_an_interval(value: float, shown: str) -> None:
    assert formats.throughput(value) == shown


def test_a_figure_that_does_not_exist_is_a_dash() -> None:
    assert (
        formats.throughput(None) == formats.ms(None) == formats.memory_mb(None) == formats.count(None) == "—"
    )
    assert formats.plus_minus(100.0, None, None) == formats.plus_minus(None, 1.0, 2.0) == "—"


def test_a_percentile_without_enough_calls_tells_how_many_there_were() -> None:
    assert formats.percentile(None, 40) == "— n = 40"
    assert formats.percentile(6.8, 400) == "6.80"


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [
        (0.0, "0 %"),
        (0.0001, "<0.1 %"),
        (0.006, "0.6 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
        (0.12, "12 %"),
        (-0.031, "-3.1 %"),
    ],
)
def test_percent_has_two_digits_at_most(fraction: float, shown: str) -> None:
    assert formats.percent(fraction) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1632, "0.163"),
        (1.544, "1.54"),
        (29.18, "29.2"),
        (10.0, "10.0"),
        (1234.0, "1,230"),
        (0.001, "0.00100"),
    ],
)
def test_latencies_have_three_digits(value: float, shown: str) -> None:
    assert formats.ms(value) == shown


def test_ms_per_item_is_as_sure_as_the_throughput() -> None:
    assert formats.ms_per_item(0.048073, 20801.0, 20676.0, 20926.0) == "0.04807"
    assert formats.ms_per_item(0.048073, None, None, None) == "0.0481"
    assert formats.ms_per_item(None, 1.0, 0.9, 1.1) == "—"


@pytest.mark.parametrize(("value", "shown"), [(0.42, "0.4"), (0.0, "0"), (12.3, "12"), (1480.4, "1,480")])
def test_memory_in_whole_megabytes(value: float, shown: str) -> None:
    assert formats.memory_mb(value) == shown


def test_sizes_of_memory_take_the_unit_that_reads_best() -> None:
    assert [formats.size_mb(mb) for mb in (208.0, 1480.0, 48210.0)] == ["208 MB", "1.5 GB", "48 GB"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.26, "0.3 s"), (12.4, "12 s"), (59.7, "1 min"), (125.0, "2 min 5 s"), (3720.0, "1 h 2 min")],
)
def test_spans_of_time_as_people_say_them(seconds: float, shown: str) -> None:
    assert formats.duration(seconds) == shown


def test_a_speedup_with_its_interval() -> None:
    assert formats.speedup(4.1312, 4.05, 4.21) == "4.13×"
    assert formats.span(4.051, 4.212) == "4.05 to 4.21"
    assert formats.span(None, 4.2) == ""


def test_ascii_keeps_the_meaning() -> None:
    assert formats.to_ascii("— 4.1× ± 2 % · µs … 模") == "- 4.1x +- 2 % | us ... ?"


def test_a_time_that_is_none_is_shown_as_written() -> None:
    assert formats.when("yesterday") == "yesterday"
    assert len(formats.when("2026-03-01T10:00:00Z")) == len("2026-03-01 10:00")


def test_an_interval_beyond_its_own_value_is_not_put_into_per_cent() -> None:
    assert formats.plus_minus(500.0, 60.0, 6700.0) == ">100 %"
