"""The headless table's columns and header, and the bar."""

from __future__ import annotations

import click
import msgspec
import pytest

from engine.events import Confirmed
from engine.plan import Plan
from engine.record import RunRecord
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


FELL = Confirmed(5000.0, 4950.0, 5050.0, faults_per_call=3100.0, agrees=False)


def test_a_size_that_fell_is_marked_beside_whatever_else_it_is() -> None:
    said = runs.verdict(32, knee=8, ties=(16,))
    assert [rows.mark_of(size, said, fell=True) for size in (1, 8, 16, 32)] == ["fell", "k+f", "t+f", "p+f"]
    both = runs.verdict(32, knee=32)
    assert rows.mark_of(32, both, fell=True) == "pk+f"
    assert rows.mark_of(32, None, fell=True) == "fell"
    assert all(len(rows.mark_of(size, both, fell=True)) <= 4 for size in (1, 32))


def test_the_figure_that_counts_has_a_column_once_there_is_one() -> None:
    plain = RunRecord.of([runs.started(Plan()), runs.ready(), runs.stable(8, 1600.0)])
    assert "fresh" not in [column.header for column in rows.columns_of(plain)]
    fell = RunRecord.of([
        runs.started(Plan()), runs.ready(), runs.stable(8, 1600.0), runs.stable(32, 6400.0, confirmed=FELL)
    ])  # fmt: skip
    (column,) = [one for one in rows.columns_of(fell) if one.header == "fresh"]
    assert [column.cell(point, mark) for point, mark in rows.rows(fell)] == ["", "5,000"]
    assert [mark for _, mark in rows.rows(fell)] == ["", "fell"]
    assert "fresh" in [one.header for one in rows.fitting(rows.columns_of(fell), 80)]


def test_read_aloud_a_row_tells_which_figure_counts() -> None:
    said = rows.sentence(runs.stable(32, 6400.0, confirmed=FELL), "images/s")
    assert said.endswith("Stable. In a fresh process 5,000 images/s: that figure counts.")
    assert "fresh" not in rows.sentence(runs.stable(32, 6400.0), "images/s")
