"""Exports: fixed columns with units, and texts that neither a spreadsheet nor Markdown takes for more than texts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import msgspec
import pytest

from engine import events, export
from engine.errors import UsageError
from engine.events import AnyEvent
from engine.plan import Plan
from engine.record import RunRecord
from tests.unit import cli_runs as runs
from tests.unit.cli_runs import ScriptedSession

SESSION = ScriptedSession(runs.sweep)


def sweep(name: str = "fashion-cnn", *more: AnyEvent) -> RunRecord:
    def stream() -> Iterator[AnyEvent]:
        for event in runs.sweep(Plan(), SESSION):
            yield msgspec.structs.replace(event, name=name) if isinstance(event, events.ModelReady) else event

    return RunRecord.of([*stream(), *more])


def race() -> RunRecord:
    return RunRecord.of(runs.race(Plan(kind="race"), SESSION))


def rows(record: RunRecord) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(export.to_csv(record), newline="")))


def test_the_columns_are_fixed_and_carry_their_units() -> None:
    header = export.to_csv(sweep()).splitlines()[0]
    assert header == (
        "run,model,device,threads,dtype,allocator,batch_size,state,marks,throughput,throughput_low,throughput_high,"
        "throughput_unit,latency_p50_ms,latency_p90_ms,latency_p95_ms,latency_p99_ms,ms_per_item,calls,blocks,cold_ms,"
        "memory_mb,faults_per_call,effective_batch_size,confirmed_throughput,confirmed_throughput_low,"
        "confirmed_throughput_high,error,warnings,confirmed_faults_per_call,counting_throughput"
    )


def test_a_csv_reader_gets_every_figure_with_all_its_digits() -> None:
    found = {row["batch_size"]: row for row in rows(sweep())}
    assert list(found) == ["1", "8", "32", "128", "512"]
    assert float(found["32"]["throughput_low"]) == 6400.0 * 0.99
    assert (found["32"]["throughput_unit"], found["32"]["marks"]) == ("images/s", "peak knee")
    assert found["32"]["latency_p99_ms"] == ""
    assert (found["128"]["state"], found["128"]["throughput"]) == ("oom", "")
    assert found["128"]["error"] == "out of memory: tried to allocate 48 GB"


HOSTILE = [
    '=HYPERLINK("http://x","y")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "  =1+1",
    "\t=1",
    "\r=1",
    "\n=cmd|'/c calc'!A1",
    "\uff1d1+1",
    'a,"b";c',
    "two\r\nlines",
    "\x1b[31mred\x00",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_cell_is_a_formula_or_breaks_its_row(name: str) -> None:
    found = rows(sweep(name))
    assert len(found) == 5
    cell = found[0]["model"]
    assert cell.lstrip()[:1] not in tuple("=+-@\uff1d")
    assert all(char.isprintable() for char in cell)
    assert found[0]["batch_size"] == "1"


def test_a_negative_figure_stays_a_number() -> None:
    record = sweep("m", runs.stable(1, 200.0, memory_mb=-0.5))
    assert rows(record)[0]["memory_mb"] == "-0.5"


def test_a_race_has_a_row_for_each_lane() -> None:
    slow, fast = rows(race())
    assert (slow["lane"], slow["total_ms"], slow["speedup"]) == ("256 calls of 1", "120.0", "4.0")
    assert (fast["batch_size"], fast["first_answer_ms"], fast["outputs_agree"]) == ("256", "30.0", "true")


def test_json_holds_the_plan_the_host_the_rows_and_the_verdict() -> None:
    content = msgspec.json.decode(export.to_json(sweep()))
    assert content["plan"]["batch_sizes"] == [1, 8, 32, 128, 512]
    assert content["host"]["hostname"] == "box-07"
    assert [point["batch_size"] for point in content["points"]] == [1, 8, 32, 128, 512]
    assert content["points"][2]["latency_p99_ms"] is None
    assert content["verdict"]["peak"] == 32
    assert content["warnings"][0]["kind"] == "load"
    assert msgspec.json.decode(export.to_json(race()))["lanes"][0]["calls"] == 256


def test_markdown_says_what_the_figures_depend_on() -> None:
    text = export.to_markdown(sweep())
    for fact in (
        "- Model: fashion-cnn", "- Device: cpu", "- Threads: 2", "- Allocator: system", f"- torch: {runs.HOST['torch']}",
        "- Host: box-07", "- Date: 2026-03-01T10:00:00Z", "- Seed: 0",
    ):  # fmt: skip
        assert fact in text.splitlines()
    (row,) = [line for line in text.splitlines() if line.startswith("| 32 ")]
    assert row == "| 32 | 6,400 | 6,336 to 6,464 | 1 | — | 0.1562 | 12 | 0 | stable | peak, knee |"


def test_markdown_of_a_hostile_name_stays_one_heading_and_one_table() -> None:
    text = export.to_markdown(sweep("a|b [x](http://y) <b>\n# more `c` *d*"))
    assert text.splitlines()[0] == (
        "# Batch-size sweep: a\\|b \\[x\\](http://y) \\<b\\> \\# more \\`c\\` \\*d\\*"
    )
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in table} == {11}


def test_a_run_that_measured_nothing_can_be_exported() -> None:
    record = RunRecord.of([runs.started(Plan()), runs.finished("failed")])
    assert rows(record) == []
    assert msgspec.json.decode(export.to_json(record))["points"] == []
    assert "fashion-cnn" in export.to_markdown(record)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UsageError, match="csv, json, md"):
        export.export(sweep(), "xlsx")


def test_a_figure_that_counts_instead_of_the_runs_is_exported_and_marked() -> None:
    fell = events.Confirmed(1200.0, 1190.0, 1210.0, faults_per_call=3100.0, agrees=False)
    record = sweep("fashion-cnn", runs.stable(8, 1600.0, confirmed=fell))
    found = {row["batch_size"]: row for row in rows(record)}
    assert found["8"]["marks"] == "fell"
    assert (found["8"]["throughput"], found["8"]["counting_throughput"]) == ("1600.0", "1200.0")
    assert found["8"]["confirmed_faults_per_call"] == "3100.0"
    assert found["32"]["counting_throughput"] == found["32"]["throughput"]
    assert "In a fresh process 8 reaches 1,200 images/s (1,190 to 1,210): that figure counts." in (
        export.to_markdown(record)
    )
