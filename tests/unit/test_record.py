"""A run as its events tell it."""

from __future__ import annotations

from engine import events
from engine.plan import Plan
from engine.record import RunRecord
from engine.results import Block, Failure, Prepared


def started(run: str) -> events.RunStarted:
    return events.RunStarted(run=run, t=0.0, kind="sweep", plan=Plan(), host={}, started_at="", version="0")


def block(size: int) -> Block:
    return Block(size, 1, 0.01, (10.0,), size)


def test_events_of_another_run_change_nothing() -> None:
    record = RunRecord.of([started("a")])
    assert not record.add(events.Point(run="b", t=1.0, batch_size=8, state="stable"))
    assert not record.add(started("b"))
    assert record.points == {}
    assert record.id == "a"


def test_events_before_the_start_are_refused() -> None:
    assert not RunRecord().add(events.Status(run="a", t=0.0, phase="measuring"))


def test_the_last_point_counts_and_raw_blocks_are_kept() -> None:
    record = RunRecord.of(
        [
            started("a"),
            events.SizePrepared(run="a", t=0.1, prepared=Prepared(8, cold_ms=2.0, calls_per_block=1)),
            events.BlockMeasured(run="a", t=0.2, block=block(8)),
            events.Point(run="a", t=0.2, batch_size=8, state="measuring"),
            events.BlockMeasured(run="a", t=0.3, block=block(8)),
            events.Point(run="a", t=0.3, batch_size=8, state="stable"),
            events.BlockMeasured(run="a", t=0.4, block=block(8), confirming=True),
            events.SizeFailed(run="a", t=0.5, batch_size=32, failure=Failure("oom", "out of memory", "")),
            events.Point(run="a", t=0.5, batch_size=32, state="oom"),
        ]
    )
    assert record.points[8].state == "stable"
    known = record.measurements[8]
    assert (len(known.blocks), len(known.confirmed), known.state) == (2, 1, "stable")
    assert known.prepared is not None
    assert record.measurements[32].failure is not None
    assert not record.measurements[32].deployable
