"""What a person may type, and what is said when it cannot be used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import plan
from engine.errors import UsageError


def test_list_is_made_unique_and_ascending_and_says_so() -> None:
    parsed = plan.parse_batch_sizes("128, 8,8 ,1,,512")
    assert parsed.sizes == (1, 8, 128, 512)
    assert "merged: 8" in parsed.note
    assert "ascending" in parsed.note


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1,8,32,128,512", (1, 8, 32, 128, 512)),
        ("1..16", (1, 2, 4, 8, 16)),
        ("3..20", (3, 6, 12)),
        ("64..256/64", (64, 128, 192, 256)),
        ("5..5", (5,)),
        ("1..4, 10..12/1 ,7", (1, 2, 4, 7, 10, 11, 12)),
        ("007", (7,)),
    ],
)
def test_lists_and_ranges(text: str, sizes: tuple[int, ...]) -> None:
    assert plan.parse_batch_sizes(text).sizes == sizes


def test_a_list_in_order_needs_no_note() -> None:
    assert plan.parse_batch_sizes("1,8,32").note == ""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("0", "item 1 is '0'"),
        ("1,-4", "item 2 is '-4'"),
        ("1,8,1e3", "item 3 is '1e3'"),
        ("8;16", "item 1 is '8;16'"),
        ("", "no batch size"),
        (" , ,", "no batch size"),
        ("8,1.5", "item 2 is '1.5'"),
        ("9..3", "ends before it begins"),
        ("1..64/0", "step"),
        ("1..9999999999", "item 1"),
        ("4294967296", "item 1"),
        ("9" * 5000, "item 1"),
        ("٣", "item 1"),
        ("\x1b[31m", "item 1 is '?[31m'"),
        ("1..1000000/1", "more than 4,096"),
        (",".join(map(str, range(1, 10_001))), "more than 4,096"),
    ],
)
def test_a_bad_token_is_named_with_its_place(text: str, named: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan.parse_batch_sizes(text)
    assert named in caught.value.message
    assert caught.value.argument == "--batch-sizes"
    assert caught.value.exit_code == 2


@given(st.sets(st.integers(1, plan.MAX_BATCH_SIZE), min_size=1, max_size=30))
def test_a_formatted_list_reads_back(sizes: set[int]) -> None:
    ordered = tuple(sorted(sizes))
    assert plan.parse_batch_sizes(plan.format_batch_sizes(ordered)) == plan.BatchList(ordered, "")


@given(st.text(max_size=60))
def test_any_text_is_a_list_or_a_usage_error(text: str) -> None:
    try:
        parsed = plan.parse_batch_sizes(text)
    except UsageError:
        return
    assert parsed.sizes == tuple(sorted(set(parsed.sizes)))
    assert parsed.sizes[0] >= 1


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("20ms", 20.0),
        ("0.02s", 20.0),
        ("500us", 0.5),
        ("500µs", 0.5),
        (" 7 ms ", 7.0),
        ("5", 5.0),
        ("1m", 60_000.0),
    ],
)
def test_limits_in_their_units(text: str, ms: float) -> None:
    assert plan.parse_limit_ms(text) == pytest.approx(ms)


@pytest.mark.parametrize(
    "text", ["abc", "-1", "0", "0ms", "", "ms", "nan", "inf", "1e3ms", "20 parsecs", "1e999s"]
)
def test_nonsense_limits_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan.parse_limit_ms(text)
    assert "--limit" in caught.value.title
    assert "20ms" in caught.value.message


@pytest.mark.parametrize(("text", "value"), [("2%", 0.02), ("0.02", 0.02), ("50%", 0.5), (".1%", 0.001)])
def test_precisions(text: str, value: float) -> None:
    assert plan.parse_precision(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["2", "0", "-1%", "51%", "x", "0.01%"])
def test_nonsense_precisions_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        plan.parse_precision(text)


@pytest.mark.parametrize(("text", "value"), [("99", 99), ("p95", 95), ("50", 50)])
def test_percentiles(text: str, value: int) -> None:
    assert plan.parse_percentile(text) == value


@pytest.mark.parametrize("text", ["100", "49", "99.9", "", "-5", "pp9"])
def test_nonsense_percentiles_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        plan.parse_percentile(text)


@pytest.mark.parametrize("text", ["0", "-2", "1.5", "many", "", "9" * 30, "65"])
def test_nonsense_counts_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan.parse_count(text, argument="--threads", most=64)
    assert "1 to 64" in caught.value.message


def test_seconds() -> None:
    assert plan.parse_seconds("30s") == 30.0
    assert plan.parse_seconds("2m") == 120.0
    assert plan.parse_seconds("1.5") == 1.5
