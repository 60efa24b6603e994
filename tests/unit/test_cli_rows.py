"""The headless table's columns and header, and the bar."""

from __future__ import annotations

import click
import msgspec
import pytest

from engine.plan import Plan
from tests.unit import cli_runs as runs
from tui import headless_rows as rows
from tui.cli import cli
from tui.headless_live import bar


def headers(width: int) -> list[str]:
    return [column.header for column in rows.fitting(rows.columns("images/s"), width)]


def test_eighty_columns_hold_all_but_the_page_faults() -> None:
    assert headers(80) == ["", "batch", "images/s", "±", "p50 ms", "p99 ms", "ms/image", "MB", "state"]


@pytest.mark.parametrize("width", [1, 10, 28])
def test_the_narrowest_table_still_tells_size_throughput_and_state(width: int) -> None:
    assert headers(width) == ["batch", "images/s", "state"]


def test_units_are_the_models_own() -> None:
    found = [column.header for column in rows.columns("items/s")]
    assert "items/s" in found
    assert "ms/item" in found


def test_the_cold_call_has_a_column_where_there_is_room() -> None:
    cells = {column.header: column.cell(runs.stable(8, 100.0), "") for column in rows.columns("images/s")}
    assert cells["cold ms"] == "5.00"
    assert "cold ms" in headers(110)


def test_the_limits_percentile_gets_a_column() -> None:
    found = [column.header for column in rows.columns("images/s", 95)]
    assert found[4:7] == ["p50 ms", "p95 ms", "p99 ms"]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(threads=1), ["cpu", "1 thread", "float32", "system allocator"]),
        (
            Plan(device="cuda", dtype="bfloat16", autocast=True, compile="default", channels_last=True, fresh=True,
                 transfer=True, allocator="/lib/jemalloc.so"),
            ["cuda", "bfloat16 autocast", "channels last", "compiled (default)", "copy to the device timed",
             "a fresh process per size", "allocator /lib/jemalloc.so"],
        ),
    ],
)  # fmt: skip
def test_the_header_names_every_option_that_changes_the_figures(plan: Plan, words: list[str]) -> None:
    assert rows.options(plan) == words


@pytest.mark.parametrize(
    ("done", "total", "drawn"),
    [(0, 0, "...."), (0, 8, "...."), (4, 8, "##.."), (8, 8, "####"), (9, 8, "####")],
)
def test_a_bar_shows_real_progress_only(done: int, total: int, drawn: str) -> None:
    assert bar(done, total, 4, "ascii") == drawn


def test_every_help_text_can_be_printed_in_ascii() -> None:
    for command in (cli, *cli.commands.values()):
        with click.Context(command, info_name="batchpeak") as context:
            assert command.get_help(context).isascii(), command.name


def test_what_leads_is_not_called_the_peak_before_that_is_certain() -> None:
    said = runs.verdict(32, knee=8, ties=(16,))
    assert [rows.mark_of(size, said) for size in (1, 8, 16, 32)] == ["", "knee", "tie", "peak"]
    unsure = msgspec.structs.replace(said, certain=False)
    assert [rows.mark_of(size, unsure) for size in (1, 8, 16, 32)] == ["", "knee", "tie", "lead"]
