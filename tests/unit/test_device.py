"""Devices through their one interface, with a scripted one that is asynchronous and runs out of memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import wire
from engine.checks import point_warnings
from engine.errors import DeviceError
from engine.models.source import LoadedModel
from engine.plan import Plan
from engine.results import Measurement
from engine.worker import device, memory, throttling
from engine.worker.inbox import Inbox
from engine.worker.service import Outside, Service

MS = 1_000_000


class ScriptedDevice:
    """Takes work at once, does it in `work_ns` of its own clock when waited for, and holds `room` items at most."""

    name = "cpu"
    timing = "scripted"

    def __init__(self, work_ns: int = 5 * MS, room: int = 10**9, launch_ns: int = 10_000) -> None:
        self.now = 0
        self.work_ns = work_ns
        self.launch_ns = launch_ns
        self.room = room
        self.pending = 0
        self.emptied = 0
        self.reasons: tuple[str, ...] = ()
        self.batches: list[weakref.ref[torch.Tensor]] = []
        self.synchronize: Callable[[], object] | None = self._wait

    def clock(self) -> int:
        return self.now

    def launch(self, batch: torch.Tensor) -> torch.Tensor:
        work = batch * 2
        self.batches.append(weakref.ref(work))
        if len(batch) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        self.now += self.launch_ns
        self.pending += 1
        return work

    def _wait(self) -> None:
        self.now += self.work_ns * self.pending
        self.pending = 0

    def put(self, thing: Any) -> Any:
        return thing

    def memory_before(self) -> int | None:
        return 1_000_000

    def memory_peak(self) -> int | None:
        return 4_000_000

    def empty_cache(self) -> None:
        self.emptied += 1

    def slowed_by(self) -> tuple[str, ...]:
        return self.reasons


class Scripted(torch.nn.Module):
    def __init__(self, forward: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self._forward = forward

    def forward(self, images: torch.Tensor) -> Any:
        return self._forward(images)


def service_of(
    scripted: ScriptedDevice,
    forward: Callable[[torch.Tensor], Any] | None = None,
    *,
    only_batch_size: int | None = None,
) -> Service:
    module = Scripted(forward or scripted.launch)
    loaded = LoadedModel(
        name="scripted",
        call=module,
        make_inputs=lambda count: torch.ones(count, 3),
        parameters=0,
        input="3 float32",
        unit="items/s",
        description="",
        module=module,
        batch_hint="It takes 8 at a time.",
        only_batch_size=only_batch_size,
    )
    service = Service(
        Inbox(lambda: b"", lambda: None),
        lambda reply: None,
        Outside(clock=scripted.clock, load=lambda plan, name: loaded, find_device=lambda name: scripted),
    )
    assert isinstance(service.answer(wire.Load(Plan(threads=torch.get_num_threads()))), wire.ReadyReply)
    return service


def prepared(reply: wire.Reply) -> Any:
    assert isinstance(reply, wire.PreparedReply), reply
    return reply.prepared


def block(reply: wire.Reply) -> Any:
    assert isinstance(reply, wire.BlockReply), reply
    return reply.block


def test_an_asynchronous_device_is_waited_for_in_every_figure() -> None:
    service = service_of(ScriptedDevice(work_ns=5 * MS, launch_ns=0))
    made = prepared(service.answer(wire.Prepare(4)))
    assert (made.cold_ms, made.calls_per_block, made.memory_mb) == (5.0, 10, 3.0)
    measured = block(service.answer(wire.Measure(4)))
    assert measured.call_ms == (5.0,) * 10
    assert measured.throughput == pytest.approx(800)


@pytest.mark.parametrize(("batch_size", "per_second"), [(1, 100), (8, 800), (32, 3200)])
def test_throughput_counts_images_not_calls(batch_size: int, per_second: int) -> None:
    service = service_of(ScriptedDevice(work_ns=10 * MS, launch_ns=0))
    prepared(service.answer(wire.Prepare(batch_size)))
    measured = block(service.answer(wire.Measure(batch_size)))
    assert measured.throughput == pytest.approx(per_second)
    assert set(measured.call_ms) == {10.0}


def test_a_slow_first_call_stays_in_the_cold_column() -> None:
    scripted = ScriptedDevice(work_ns=1000 * MS, launch_ns=0)

    def forward(images: torch.Tensor) -> torch.Tensor:
        scripted.work_ns = 1000 * MS if not scripted.batches else 5 * MS
        return scripted.launch(images)

    service = service_of(scripted, forward)
    assert prepared(service.answer(wire.Prepare(2))).cold_ms == 1000.0
    assert set(block(service.answer(wire.Measure(2))).call_ms) == {5.0}


def test_the_first_call_after_another_size_is_not_counted() -> None:
    scripted = ScriptedDevice(launch_ns=0)
    last = 0

    def forward(images: torch.Tensor) -> torch.Tensor:
        nonlocal last
        scripted.work_ns = 5 * MS if len(images) == last else 50 * MS
        last = len(images)
        return scripted.launch(images)

    service = service_of(scripted, forward)
    for size in (1, 2):
        prepared(service.answer(wire.Prepare(size)))
    for size in (1, 2, 2, 1):
        assert set(block(service.answer(wire.Measure(size))).call_ms) == {5.0}


def test_out_of_memory_at_one_size_leaves_nothing_behind_and_the_smaller_size_goes_on() -> None:
    scripted = ScriptedDevice(room=100)
    service = service_of(scripted)
    prepared(service.answer(wire.Prepare(32)))
    before = scripted.emptied
    failed = service.answer(wire.Prepare(128))
    assert isinstance(failed, wire.FailedReply)
    assert (failed.failure.kind, failed.usage) == ("oom", False)
    assert scripted.batches[-1]() is None
    assert scripted.emptied > before
    assert block(service.answer(wire.Measure(32))).batch_size == 32


def test_memory_that_runs_out_in_the_middle_of_a_block_fails_the_size() -> None:
    scripted = ScriptedDevice()
    service = service_of(scripted)
    prepared(service.answer(wire.Prepare(8)))
    scripted.room = 4
    failed = service.answer(wire.Measure(8))
    assert isinstance(failed, wire.FailedReply)
    assert failed.failure.kind == "oom"
    assert all(batch() is None for batch in scripted.batches)


def test_a_model_for_one_batch_size_fails_at_the_others_with_a_hint() -> None:
    scripted = ScriptedDevice()
    service = service_of(scripted, lambda images: scripted.launch(images).reshape(8, 3))
    assert prepared(service.answer(wire.Prepare(8))).effective_batch_size == 8
    failed = service.answer(wire.Prepare(4))
    assert isinstance(failed, wire.FailedReply)
    assert failed.failure.kind == "error"
    assert failed.failure.message.endswith("It takes 8 at a time.")
    assert isinstance(service.answer(wire.Measure(8)), wire.BlockReply)


@pytest.mark.parametrize(
    ("forward", "effective"),
    [
        (lambda x: x[:1], 1),
        (lambda x: x.repeat(2, 1), 8),
        (lambda x: (None, {"logits": x}), 4),
        (lambda x: [{"boxes": x[:0]} for _ in x], 4),
        (lambda x: None, None),
        (lambda x: x.sum(), None),
    ],
)
def test_the_batch_that_was_really_processed_is_what_counts(
    forward: Callable[[torch.Tensor], Any], effective: int | None
) -> None:
    scripted = ScriptedDevice()

    def called(images: torch.Tensor) -> Any:
        return forward(scripted.launch(images))

    service = service_of(scripted, called)
    assert prepared(service.answer(wire.Prepare(4))).effective_batch_size == effective
    measured = block(service.answer(wire.Measure(4)))
    assert measured.items == measured.calls * (4 if effective is None else effective)


@pytest.mark.parametrize(
    ("factor", "finite", "all_zero"), [(1.0, True, False), (float("nan"), False, False), (0.0, True, True)]
)
def test_outputs_that_say_nothing_are_flagged(factor: float, finite: bool, all_zero: bool) -> None:
    scripted = ScriptedDevice()
    service = service_of(scripted, lambda images: scripted.launch(images) * factor)
    made = prepared(service.answer(wire.Prepare(4)))
    assert (made.finite, made.all_zero) == (finite, all_zero)


def test_a_six_second_call_is_warmed_up_once_and_asked_for_its_memory_at_its_cold_call() -> None:
    scripted = ScriptedDevice(work_ns=6000 * MS)
    service = service_of(scripted)
    made = prepared(service.answer(wire.Prepare(1)))
    assert (made.warmup_calls, made.calls_per_block, made.memory_mb) == (1, 1, 3.0)
    assert len(scripted.batches) == 2


def test_a_lap_takes_progress_messages_out_of_its_time() -> None:
    scripted = ScriptedDevice(work_ns=100 * MS, launch_ns=0)
    service = service_of(scripted)
    steps: list[wire.RaceStep] = []

    def slow_send(reply: wire.Reply) -> None:
        assert isinstance(reply, wire.RaceStep)
        steps.append(reply)
        scripted.now += 7 * MS

    service._send = slow_send
    lap = service.answer(wire.Lap(0, 10, 1))
    assert isinstance(lap, wire.LapDone)
    assert lap.call_ms == (100.0,) * 10
    assert lap.total_ms == pytest.approx(1000.0)
    assert [step.done for step in steps] == [0, *sorted({step.done for step in steps[1:]})]
    assert len(steps) <= 5


def test_lanes_whose_outputs_differ_are_told_apart() -> None:
    scripted = ScriptedDevice()
    service = service_of(scripted, lambda images: scripted.launch(images) * len(images))
    for lane, batch_size in ((0, 1), (1, 4)):
        assert isinstance(service.answer(wire.Lap(lane, 8, batch_size)), wire.LapDone)
    answer = service.answer(wire.CompareLaps())
    assert isinstance(answer, wire.Agreement)
    assert answer.agree is False
    assert answer.largest_difference == pytest.approx(6.0)


def test_a_device_that_this_machine_has_not_is_refused_with_those_it_has() -> None:
    if torch.accelerator.is_available():
        pytest.skip("this machine has an accelerator")
    assert device.available() == ("cpu",)
    for name in ("cuda", "cuda:3", "mps", "xpu", "nonsense", ""):
        with pytest.raises(DeviceError) as refused:
            device.find(name)
        assert "--device cpu" in refused.value.remedy


def test_the_processors_memory_is_what_a_call_touched_and_none_where_the_system_keeps_no_mark(
    tmp_path: Path,
) -> None:
    assert memory.growth_mb(10_000_000, 42_000_000) == 32.0
    assert memory.growth_mb(10, 5) == 0.0
    assert memory.growth_mb(None, 5) is None
    (tmp_path / "status").write_text("Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\n", encoding="ascii")
    assert memory.high_water(tmp_path) == 2048 * 1024
    assert memory.reset_high_water(tmp_path) == 1024 * 1024
    assert memory.reset_high_water(tmp_path / "nowhere") is None


def test_a_file_for_one_batch_size_is_not_called_with_another_and_the_run_goes_on() -> None:
    scripted = ScriptedDevice()
    service = service_of(scripted, only_batch_size=8)
    reply = service.answer(wire.Prepare(2))
    assert isinstance(reply, wire.FailedReply)
    assert (reply.failure.title, reply.failure.message) == (
        "takes batch size 8 only",
        "It takes 8 at a time.",
    )
    assert reply.failure.of_size
    assert not scripted.batches
    assert prepared(service.answer(wire.Prepare(8))).effective_batch_size == 8


def test_what_slows_the_device_down_is_kept_with_the_block_and_becomes_a_warning() -> None:
    scripted = ScriptedDevice()
    service = service_of(scripted)
    made = prepared(service.answer(wire.Prepare(4)))
    cool = block(service.answer(wire.Measure(4)))
    scripted.reasons = ("the power limit",)
    hot = block(service.answer(wire.Measure(4)))
    assert (cool.slowed_by, hot.slowed_by) == ((), ("the power limit",))
    told = {
        warned.kind: warned.text
        for warned in point_warnings(Measurement(batch_size=4, prepared=made, blocks=(cool, hot)))
    }
    assert (
        told["throttled"] == "the device ran below its clock after 1 of 2 blocks because of the power limit"
    )
    only_cool = point_warnings(Measurement(batch_size=4, prepared=made, blocks=(cool,)))
    assert "throttled" not in {warned.kind for warned in only_cool}


class ScriptedDriver:
    """The part of NVML that is asked; `mask` None: the driver does not answer."""

    class NVMLError(Exception):
        pass

    def __init__(self, mask: int | None) -> None:
        self.mask = mask
        self.asked_for: list[str] = []

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        if self.mask is None:
            raise self.NVMLError

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802 - the library's name
        self.asked_for.append(uuid)
        return uuid

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:  # noqa: N802 - the library's name
        if self.mask is None:
            raise self.NVMLError
        return self.mask


@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        (0x0, ()),
        (0x1, ()),  # idle
        (0x2, ()),  # clocks set by a person
        (0x4 | 0x1, ("the power limit",)),
        (0x20 | 0x40, ("its temperature (software limit)", "its temperature (hardware limit)")),
    ],
)
def test_reasons_of_the_driver_are_told_in_words(mask: int, reasons: tuple[str, ...]) -> None:
    driver = ScriptedDriver(mask)
    read = throttling.reader("1234", driver)
    assert read is not None
    assert read() == reasons
    assert driver.asked_for == ["GPU-1234"]
    driver.mask = None
    assert read() == ()


def test_a_driver_that_does_not_answer_gives_no_reasons() -> None:
    assert throttling.reader("1234", ScriptedDriver(None)) is None


def test_a_device_that_does_not_recover_is_told_with_the_failure_and_ends_the_worker() -> None:
    scripted = ScriptedDevice()
    broken = False

    def forward(images: torch.Tensor) -> torch.Tensor:
        nonlocal broken
        broken = broken or len(images) == 8
        return scripted.launch(images)

    def wait() -> None:
        scripted._wait()
        if broken:
            raise RuntimeError("CUDA error: device-side assert triggered")

    scripted.synchronize = wait
    service = service_of(scripted, forward)
    assert prepared(service.answer(wire.Prepare(2))).batch_size == 2
    reply = service.answer(wire.Prepare(8))
    assert isinstance(reply, wire.FailedReply)
    assert reply.leaving
    assert reply.failure.message.startswith("CUDA error: device-side assert triggered")


def test_an_error_that_leaves_the_device_well_keeps_the_worker() -> None:
    def forward(images: torch.Tensor) -> torch.Tensor:
        raise ValueError("no")

    reply = service_of(ScriptedDevice(), forward).answer(wire.Prepare(8))
    assert isinstance(reply, wire.FailedReply)
    assert not reply.leaving
