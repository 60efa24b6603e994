"""Whole runs through real (scripted, torch-free) worker processes: what stays when sizes fail, workers die and people cancel."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine import events
from engine.errors import StoreError
from engine.plan import Plan
from engine.record import RunRecord
from engine.session import Session

SCRIPT = [sys.executable, str(Path(__file__).with_name("torchless_worker.py"))]


def scripted(sizes: tuple[int, ...] = (1, 8, 32), **arguments: str) -> Plan:
    return Plan(model="scripted", batch_sizes=sizes, confirm=False, model_args=arguments, size_budget_s=2.0)


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(command=SCRIPT, host_facts=dict, free_mb=lambda: 1000.0) as made:
        yield made


def record_of(session: Session, plan: Plan, **more: object) -> RunRecord:
    return RunRecord.of(session.run(plan, **more))  # type: ignore[arg-type]


def states(record: RunRecord) -> dict[int, str]:
    return {size: point.state for size, point in sorted(record.points.items())}


def starts(log: Path) -> int:
    return sum(line.endswith(" load") for line in log.read_text().splitlines())


def test_a_sweep_ends_with_stable_rows_a_verdict_and_its_end(session: Session) -> None:
    record = record_of(session, scripted())
    assert states(record) == {1: "stable", 8: "stable", 32: "stable"}
    assert record.verdict is not None
    assert record.verdict.peak == 32
    assert record.finished is not None
    assert record.finished.reason == "completed"
    for size, point in record.points.items():
        assert point.throughput == pytest.approx(size / (1.0 + 0.1 * size) * 1000, rel=0.02)
        assert point.cold_ms is not None
        assert point.cold_ms > 2 * (1.0 + 0.1 * size)


def test_the_sink_has_each_event_before_it_is_seen(session: Session) -> None:
    stored: list[events.AnyEvent] = []
    for event in session.run(scripted(), sink=stored.append):
        assert stored[-1] == event
    assert isinstance(stored[0], events.RunStarted)
    assert isinstance(stored[-1], events.RunFinished)


def test_a_sink_that_fails_ends_the_saving_not_the_measuring(session: Session) -> None:
    def full(event: events.AnyEvent) -> None:
        if isinstance(event, events.Point):
            raise StoreError("no space left.", title="the run cannot be saved")

    record = record_of(session, scripted(), sink=full)
    assert states(record) == {1: "stable", 8: "stable", 32: "stable"}
    assert [warning.kind for warning in record.warnings].count("not-saved") == 1


def test_out_of_memory_keeps_the_smaller_rows_and_skips_the_larger(session: Session) -> None:
    record = record_of(session, scripted((1, 8, 32, 128, 512), oom_from="128"))
    assert states(record) == {1: "stable", 8: "stable", 32: "stable", 128: "oom", 512: "skipped"}
    skipped = record.points[512].error
    assert skipped is not None
    assert "128" in f"{skipped.title} {skipped.message}"
    assert record.verdict is not None
    assert (record.verdict.peak, record.verdict.kind) == (32, "memory")


def test_the_same_error_at_two_sizes_ends_the_run(session: Session) -> None:
    record = record_of(session, scripted((1, 8, 32, 128), error_from="1"))
    assert states(record) == {1: "error", 8: "error", 32: "skipped", 128: "skipped"}
    assert record.verdict is not None
    assert record.verdict.peak is None
    failed = record.points[1].error
    assert failed is not None
    assert "shapes cannot be multiplied" in failed.message


def test_a_worker_killed_at_one_size_costs_that_size_only(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "log"
    record = record_of(session, scripted((1, 8, 32), die_at="8", log=str(log)))
    assert states(record) == {1: "stable", 8: "error", 32: "stable"}
    lost = record.points[8].error
    assert lost is not None
    assert "killed by the system" in f"{lost.title} {lost.message}"
    assert "about to end" in lost.message
    assert starts(log) == 2


def test_a_size_that_breaks_the_device_costs_the_others_nothing_but_a_fresh_worker(
    session: Session, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    record = record_of(session, scripted((1, 8, 32), break_at="8", log=str(log)))
    assert states(record) == {1: "stable", 8: "error", 32: "stable"}
    failed = record.points[8].error
    assert failed is not None
    assert (failed.title, failed.message) == ("AcceleratorError", "device-side assert")
    assert starts(log) == 2


def test_a_rerun_uses_the_warm_worker_and_another_model_does_not(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = record_of(session, scripted((1, 8), log=str(log)))
    again = record_of(session, scripted((1, 16), log=str(log)))
    assert starts(log) == 1
    assert first.id != again.id
    assert states(again) == {1: "stable", 16: "stable"}
    record_of(session, scripted((1,), log=str(log), fixed_ms="2"))
    assert starts(log) == 2


def test_fresh_gives_every_size_its_own_worker(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "log"
    plan = scripted((1, 8, 32), log=str(log))
    record = record_of(session, Plan(**{**_fields(plan), "fresh": True}))
    assert states(record) == {1: "stable", 8: "stable", 32: "stable"}
    processes: dict[str, set[str]] = {}
    for line in log.read_text().splitlines():
        pid, *what = line.split()
        if what[0] == "prepare":
            processes.setdefault(pid, set()).add(what[1])
    assert sorted(processes.values(), key=min) == [{"1"}, {"32"}, {"8"}]
    assert not any(psutil.pid_exists(int(pid)) for pid in processes)


def test_cancel_reaches_whichever_of_the_fresh_processes_is_in_a_call(
    session: Session, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    os.mkfifo(log)
    ear = os.open(log, os.O_RDWR)

    def listen() -> None:
        heard = b""
        while b"hanging" not in heard:
            heard = heard[-10:] + os.read(ear, 4096)
        session.cancel()

    plan = scripted((1, 8, 32), log=str(log), hang_at="1", from_round="1")
    listener = threading.Thread(target=listen)
    listener.start()
    record = record_of(session, Plan(**{**_fields(plan), "fresh": True}))
    listener.join()
    os.close(ear)
    assert record.finished is not None
    assert record.finished.reason == "cancelled"
    assert record.points[1].throughput is not None


def test_more_fresh_sizes_than_processes_may_live_are_each_started_once(
    session: Session, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    plan = scripted(tuple(range(1, 12)), log=str(log))
    record = record_of(session, Plan(**{**_fields(plan), "fresh": True}))
    assert set(states(record).values()) == {"stable"}
    assert starts(log) == 11


def test_what_an_earlier_run_made_is_let_go_before_the_next(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for event in session.run(scripted((1, 512), log=str(log))):
        if isinstance(event, events.BlockMeasured):
            session.cancel()
    record_of(session, scripted((8,), log=str(log)))
    said = [line.split(maxsplit=1)[1] for line in log.read_text().splitlines()]
    assert said.index("release None") < said.index("prepare 8")


def test_the_fresh_process_finds_the_memory_of_the_shared_one_free(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "log"
    record_of(session, Plan(**{**_fields(scripted((1, 8), log=str(log))), "confirm": True}))
    lines = [line.split(maxsplit=1) for line in log.read_text().splitlines()]
    shared = lines[0][0]
    fresh = next(index for index, (pid, _) in enumerate(lines) if pid != shared)
    assert [what for pid, what in lines[:fresh] if pid == shared][-1] == "release None"


def test_a_fresh_process_that_dies_is_told_and_leaves_the_figures_of_the_run(
    session: Session, tmp_path: Path
) -> None:
    plan = scripted((1, 8), only_second=str(tmp_path / "started"), die_at="8")
    record = record_of(session, Plan(**{**_fields(plan), "confirm": True}))
    (told,) = [warning for warning in record.warnings if warning.kind == "not-confirmed"]
    assert "batch size 8" in told.text
    assert "killed by the system" in told.text
    assert record.points[8].confirmed is None
    assert record.points[8].state == "stable"


def test_pausing_holds_a_confirmation_and_a_race_too(session: Session) -> None:
    confirming = Plan(**{**_fields(scripted((1, 8))), "confirm": True})
    racing = Plan(kind="race", model="scripted", images=64, budget_s=0.01)
    for plan, moment in ((confirming, "confirming"), (racing, "measuring")):
        phases: list[str] = []
        for event in session.run(plan):
            if isinstance(event, events.Status):
                phases.append(event.phase)
                if event.phase == moment and "paused" not in phases:
                    session.pause()
                if event.phase == "paused":
                    session.resume()
        assert phases[phases.index("paused") + 1] == moment


def test_a_race_that_is_cancelled_keeps_the_rounds_that_were_run(session: Session) -> None:
    laps = 0
    record = RunRecord()
    for event in session.run(Plan(kind="race", model="scripted", images=64, min_rounds=20)):
        record.add(event)
        if isinstance(event, events.RaceProgress) and event.done == event.total:
            laps += 1
            if laps == 5:
                session.cancel()
    assert record.finished is not None
    assert record.finished.reason == "cancelled"
    assert record.race is not None
    assert record.race.rounds == 2
    assert record.race.outputs_agree is None


def test_more_threads_than_cores_are_warned_of_in_a_race() -> None:
    plan = Plan(kind="race", model="scripted", images=64, threads=4, budget_s=0.01)
    with Session(command=SCRIPT, host_facts=lambda: {"usable_cores": 2}, free_mb=lambda: None) as session:
        assert [warning.kind for warning in record_of(session, plan).warnings] == ["threads"]


def test_recommended_sizes_are_confirmed_in_fresh_processes(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "log"
    plan = scripted((1, 8, 32), log=str(log))
    record = record_of(session, Plan(**{**_fields(plan), "confirm": True}))
    confirmed = record.points[32].confirmed
    assert confirmed is not None
    assert confirmed.throughput == pytest.approx(32 / 4.2 * 1000, rel=0.02)
    assert starts(log) > 1
    assert record.measurements[32].confirmed
    assert all(block.worker > 1 for block in record.measurements[32].confirmed)


def test_after_a_size_falls_in_a_fresh_process_the_run_goes_on_to_one_that_holds(session: Session) -> None:
    plan = scripted((4, 8, 16, 32, 64), alone_from="32")
    record = record_of(session, Plan(**{**_fields(plan), "confirm": True}))
    confirmed = {size: point.confirmed for size, point in record.points.items() if point.confirmed}
    assert set(confirmed) == {16, 32, 64}
    assert {size: said.agrees for size, said in confirmed.items()} == {16: True, 32: False, 64: False}
    assert record.verdict is not None
    assert (record.verdict.peak, record.verdict.recommended) == (16, 16)


def test_a_model_that_cannot_be_loaded_fails_the_run_with_its_remedy(session: Session) -> None:
    record = record_of(session, scripted(load_error="no attribute 'net'"))
    assert record.points == {}
    assert record.finished is not None
    assert record.finished.reason == "failed"
    assert record.finished.usage
    assert record.finished.remedy == "Fix it."
    assert record.finished.error is not None
    assert "no attribute 'net'" in record.finished.error.message


@pytest.mark.parametrize("deaf", ["", "term"])
def test_cancel_in_a_call_that_never_ends_keeps_what_was_measured(session: Session, deaf: str) -> None:
    record = RunRecord()
    for event in session.run(scripted((1, 8, 32), hang_at="32", deaf=deaf)):
        record.add(event)
        # The first round ascends: when 8 is told, the next block hangs in 32.
        if isinstance(event, events.SizePrepared) and event.prepared.batch_size == 32:
            session.cancel()
    assert record.finished is not None
    assert record.finished.reason == "cancelled"
    assert states(record) == {1: "cancelled", 8: "cancelled", 32: "cancelled"}
    assert record.points[8].throughput is not None
    assert record.points[32].throughput is None
    again = record_of(session, scripted((1, 8)))
    assert states(again) == {1: "stable", 8: "stable"}


def test_what_a_cancelled_run_lacks_is_measured_by_a_resumed_one(session: Session) -> None:
    first = RunRecord()
    for event in session.run(scripted((1, 8, 32))):
        first.add(event)
        if isinstance(event, events.Point) and event.batch_size == 1 and event.state == "stable":
            session.cancel()
    assert states(first)[1] == "stable"
    prior = [known for known in first.measurements.values() if known.state == "stable"]
    resumed = record_of(session, scripted((1, 8, 32)), prior=prior, resumes=first.id)
    assert states(resumed) == {1: "stable", 8: "stable", 32: "stable"}
    assert resumed.points[1].kept_from == first.id
    assert resumed.points[32].kept_from is None
    assert resumed.measurements[1].blocks == first.measurements[1].blocks


def test_a_size_that_would_not_fit_is_skipped_with_its_forecast(session: Session) -> None:
    plan = scripted((1, 8, 2**25), memory_per_item_mb="1")
    record = record_of(session, plan)
    assert states(record) == {1: "stable", 8: "stable", 2**25: "skipped"}
    refused = record.points[2**25].error
    assert refused is not None
    assert "--force" in refused.message
    assert "1.0 GB free" in refused.message
    forced = record_of(session, Plan(**{**_fields(plan), "force": True}))
    assert forced.points[2**25].state != "skipped"


def test_what_a_call_takes_whatever_its_size_does_not_refuse_a_size_that_fits(
    session: Session, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    record = record_of(session, scripted((1, 512), memory_fixed_mb="20", log=str(log)))
    assert states(record) == {1: "stable", 512: "stable"}
    said = [line.split(maxsplit=1)[1] for line in log.read_text().splitlines()]
    assert said[said.index("prepare 8") + 1] == "release 8"


def test_a_first_size_of_unknown_memory_is_probed_small(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "log"
    record = record_of(session, scripted((2**16,), memory_per_item_mb="1", log=str(log)))
    assert states(record) == {2**16: "skipped"}
    assert "prepare 2\n" in log.read_text()


def test_the_run_ends_when_the_consumer_goes_away(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "log"
    stream = session.run(scripted((1, 8), log=str(log)))
    for event in stream:
        if isinstance(event, events.BlockMeasured):
            break
    stream.close()  # type: ignore[attr-defined]
    pid = int(log.read_text().split()[0])
    assert not psutil.pid_exists(pid)


def test_pausing_holds_the_next_block_until_resume(session: Session) -> None:
    phases = []
    for event in session.run(scripted((1, 8))):
        if isinstance(event, events.BlockMeasured) and "paused" not in phases:
            session.pause()
        if isinstance(event, events.Status):
            phases.append(event.phase)
            if event.phase == "paused":
                session.resume()
    assert "paused" in phases
    assert phases[phases.index("paused") + 1] == "measuring"


def test_cancel_ends_a_pause(session: Session) -> None:
    record = RunRecord()
    for event in session.run(scripted((1, 8))):
        record.add(event)
        if isinstance(event, events.BlockMeasured):
            session.pause()
        if isinstance(event, events.Status) and event.phase == "paused":
            session.cancel()
    assert record.finished is not None
    assert record.finished.reason == "cancelled"


def test_a_race_ends_with_lanes_and_speed_up(session: Session) -> None:
    plan = Plan(kind="race", model="scripted", images=256, budget_s=0.01)
    record = record_of(session, plan)
    assert record.race is not None
    one, all_at_once = record.race.lanes
    assert (one.calls, all_at_once.calls) == (256, 1)
    assert record.race.speedup == pytest.approx(256 * 1.1 / 26.6, rel=0.03)
    assert record.race.outputs_agree
    assert record.progress[0].done == record.progress[0].total == 256


def test_a_race_that_does_not_fit_says_so_and_runs_in_chunks_when_asked(session: Session) -> None:
    plan = Plan(kind="race", model="scripted", images=256, budget_s=0.01, model_args={"oom_from": "100"})
    record = record_of(session, plan)
    assert record.race is None
    assert record.finished is not None
    assert record.finished.error is not None
    assert "calls of 256 failed: out of memory" in record.finished.error.message
    assert "--chunked" in record.finished.remedy
    chunked = record_of(session, Plan(**{**_fields(plan), "chunked": True}))
    assert chunked.race is not None
    assert chunked.race.chunked
    assert chunked.race.lanes[1].batch_size == 64


def test_a_lost_worker_in_a_race_is_told_and_the_next_run_works(session: Session) -> None:
    plan = Plan(kind="race", model="scripted", images=16, model_args={"die_at": "16"})
    record = record_of(session, plan)
    assert record.finished is not None
    assert record.finished.reason == "worker-lost"
    assert record.finished.error is not None
    assert "about to end" in record.finished.error.message
    assert states(record_of(session, scripted((1,)))) == {1: "stable"}


def test_a_peak_search_needs_no_list(session: Session) -> None:
    plan = Plan(kind="peak", model="scripted", max_batch_size=64, confirm=False)
    record = record_of(session, plan)
    assert record.verdict is not None
    assert record.verdict.peak == 64
    assert 1 in record.points
    assert all(point.reason for point in record.points.values())


def test_an_unexpected_error_ends_the_run_and_is_raised() -> None:
    def broken() -> dict[str, object]:
        raise ZeroDivisionError("host")

    with Session(command=SCRIPT, host_facts=broken, free_mb=lambda: None) as session:
        seen: list[events.AnyEvent] = []
        with pytest.raises(ZeroDivisionError):
            record_of(session, scripted(), sink=seen.append)
    assert isinstance(seen[-1], events.RunFinished)
    assert seen[-1].reason == "failed"


def _fields(plan: Plan) -> dict[str, object]:
    return {name: getattr(plan, name) for name in plan.__struct_fields__}
