"""The stream's lines: what is written reads back, what cannot be trusted is refused."""

from __future__ import annotations

import json

import pytest

from engine import events
from engine.errors import StoreError
from engine.plan import Plan
from engine.results import Block, Failure, Prepared

HEAD = {"run": "r1", "t": 1.5}
EXAMPLES: list[events.AnyEvent] = [
    events.RunStarted(
        **HEAD,
        kind="sweep",
        plan=Plan(model_args={"width": "2"}),
        host={"cores": 2},
        started_at="2026-01-02T03:04:05Z",
        version="0",
    ),
    events.ModelReady(**HEAD, name="m", parameters=None, input="1x28x28", unit="images/s", load_s=0.5),
    events.SizePrepared(**HEAD, prepared=Prepared(8, cold_ms=3.0, calls_per_block=10)),
    events.BlockMeasured(**HEAD, block=Block(8, 2, 0.004, (2.0, 2.0), 16)),
    events.SizeFailed(**HEAD, batch_size=9, failure=Failure("oom", "out of memory", "tried 2 GB")),
    events.Point(
        **HEAD,
        batch_size=8,
        state="stable",
        throughput=4000.0,
        throughput_low=3990.0,
        throughput_high=4010.0,
        latency_ms=events.Latency(p50=2.0),
        warnings=(events.Warned("drift", "slower", "wait", {"percent": 3.0}),),
    ),
    events.Warning(**HEAD, kind="load", text="busy"),
    events.Verdict(
        **HEAD,
        peak=8,
        ties=(4,),
        knee=4,
        kind="interior",
        limit=events.Limit(20.0, 99, 8, (events.LimitVerdict(8, "pass"),)),
        cost=events.Cost(0.1, 0.2, None),
    ),
    events.RaceProgress(**HEAD, lane=0, done=3, total=256),
    events.RaceFinished(
        **HEAD,
        lanes=(events.Lane("a", 256, 1, 50.0, 0.2, 0.2), events.Lane("b", 1, 256, 10.0, 0.04, 10.0)),
        speedup=5.0,
        speedup_low=4.9,
        speedup_high=5.1,
        outputs_agree=True,
    ),
    events.Status(**HEAD, phase="measuring"),
    events.RunFinished(**HEAD, reason="completed", elapsed_s=3.0),
]


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_every_event_reads_back_from_its_line(event: events.AnyEvent) -> None:
    line = events.encode(event)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert events.decode(line) == event


def test_promised_names_are_on_the_wire() -> None:
    point = json.loads(events.encode(EXAMPLES[5]))
    assert point["event"] == "point"
    promised = (
        "run t batch_size state throughput throughput_low throughput_high latency_ms ms_per_item calls blocks cold_ms memory_mb "
        "faults_per_call effective_batch_size confirmed warnings error"
    )
    assert set(promised.split()) <= set(point)
    assert point["latency_ms"] == {"p50": 2.0, "p90": None, "p95": None, "p99": None}
    assert json.loads(events.encode(EXAMPLES[0]))["schema"] == 1


def test_unknown_fields_and_unknown_events_are_tolerated() -> None:
    assert (
        events.decode(b'{"event":"warning","run":"r","t":1,"kind":"k","text":"x","colour":"red"}') is not None
    )
    assert events.decode(b'{"event":"weather","run":"r","t":1}') is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"event":"warning","run":"r","t":"soon","kind":"k","text":"x"}',
        b'{"event":"point","run":"r","t":1,"batch_size":"8","state":"stable"}',
        b'{"event":"point","run":"r","t":1,"batch_size":8,"state":"splendid"}',
        b"[1,2]",
        b"\xff\xfe",
        b"not json",
    ],
)
def test_wrong_types_are_refused(line: bytes) -> None:
    with pytest.raises(StoreError):
        events.decode(line)


def test_a_newer_schema_is_refused_with_a_clear_word() -> None:
    newer = events.encode(EXAMPLES[0]).replace(b'"schema":1', b'"schema":2')
    with pytest.raises(StoreError, match="newer than this program"):
        events.decode(newer)


def test_a_torn_last_line_is_left_out() -> None:
    lines = [events.encode(EXAMPLES[0]), events.encode(EXAMPLES[1])[:-9]]
    assert list(events.decode_lines(lines)) == [EXAMPLES[0]]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_no_number_that_is_not_finite_is_written(number: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        events.encode(
            events.Point(**HEAD, batch_size=1, state="measuring", latency_ms=events.Latency(p50=number))
        )
    with pytest.raises(ValueError, match="not finite"):
        events.encode(events.Warning(**HEAD, kind="k", text="x", numbers={"n": number}))


@pytest.mark.parametrize(
    "event",
    [
        events.BlockMeasured(**HEAD, block=Block(8, 2, 0.0, (2.0, 2.0), 16)),
        events.BlockMeasured(**HEAD, block=Block(8, 2, 0.004, (2.0, -2.0), 16)),
        events.BlockMeasured(**HEAD, block=Block(0, 2, 0.004, (2.0, 2.0), 16)),
        events.BlockMeasured(**HEAD, block=Block(8, 2, 0.004, (2.0, 2.0), -16)),
        events.Point(**HEAD, batch_size=-1, state="stable"),
        events.RunStarted(
            **HEAD, kind="sweep", plan=Plan(batch_sizes=(0, 8)), host={}, started_at="", version="0"
        ),
        events.RunStarted(
            **HEAD, kind="sweep", plan=Plan(budget_s=-1.0), host={}, started_at="", version="0"
        ),
    ],
)
def test_figures_that_no_run_writes_are_refused(event: events.AnyEvent) -> None:
    with pytest.raises(StoreError, match="a line holds"):
        events.decode(events.encode(event))
