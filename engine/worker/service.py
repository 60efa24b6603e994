"""Answers the commands: loads the model, makes sizes ready, measures blocks, runs laps. Every failure becomes a reply."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import torch

from engine import models, wire
from engine.errors import BatchpeakError, UsageError
from engine.models.source import LoadedModel
from engine.plan import Plan
from engine.results import Block, Failure, Prepared
from engine.worker import counters, device, memory, outputs
from engine.worker.device import Device
from engine.worker.failures import classify, forget, plain, where
from engine.worker.inbox import Inbox, StopRequested, Unreadable
from engine.worker.laps import Lane, lane_of, run_lap
from engine.worker.loop import (
    SECOND,
    Calibration,
    Clock,
    Step,
    approach,
    calibrate,
    lengthened,
    quiet_collector,
    time_block,
    time_once,
    warm_up,
)
from engine.worker.options import Configured, Threads, configure, is_compiler_failure

LONG_COLD_NS = SECOND
"""After a cold call this long memory is taken from it: a further call only for the memory would make people wait."""


@dataclass(frozen=True, slots=True)
class Size:
    """A batch size made ready: its call with the inputs in it, and what a block of it is."""

    step: Step
    calibration: Calibration
    call_ns: int
    """How long a call was at the end of the warm-up."""
    items_per_call: int


@dataclass(frozen=True, slots=True)
class Outside:
    """What the service takes from outside, so that tests can script it."""

    clock: Clock
    load: Callable[[Plan, str], LoadedModel] = models.load
    find_device: Callable[[str], Device] = device.find


class Service:
    """Holds one model and its sizes. Used from one thread only: models need not be thread-safe."""

    def __init__(self, inbox: Inbox, send: Callable[[wire.Reply], object], outside: Outside) -> None:
        self._inbox = inbox
        self._send = send
        self._outside = outside
        self._model: Configured | None = None
        self._threads: Threads | None = None
        self._compiled = False
        self._sizes: dict[int, Size] = {}
        self._last_size: int | None = None
        self._race: tuple[int, Any] | None = None
        self._lanes: dict[tuple[int, int, int], Lane] = {}
        self._last_lap: dict[int, Lane] = {}
        self._other_load = counters.OtherLoad()

    def run(self) -> None:
        """Answer commands until Bye."""
        while True:
            command = self._inbox.take()
            if isinstance(command, wire.Bye):
                return
            reply = self.answer(command)
            self._send(reply)
            if isinstance(reply, wire.FailedReply) and reply.leaving:
                return

    def answer(self, command: wire.Command | Unreadable) -> wire.Reply:
        """The final reply to a command. Whatever the user's code raises, SystemExit too, becomes one."""
        try:
            with torch.inference_mode():
                reply = self._answer(command)
        except StopRequested:
            self._inbox.stopped()
            return wire.Stopped()
        except BatchpeakError as error:
            reply = wire.FailedReply(
                Failure(
                    "error",
                    plain(error.title),
                    plain(error.message),
                    where(error.__cause__, in_packages=False) if error.__cause__ else "",
                ),
                remedy=plain(error.remedy),
                usage=isinstance(error, UsageError),
            )
            forget(error)
        except BaseException as error:  # noqa: BLE001 - the user's code may raise anything; all of it is told in the reply
            hint = self._model.loaded.batch_hint if self._model is not None else ""
            reply = wire.FailedReply(
                classify(error, hint=hint, batch_size=getattr(command, "batch_size", None))
            )
            forget(error)
        if isinstance(reply, wire.FailedReply) and not self._let_go_after_failure(command):
            reply = msgspec.structs.replace(reply, leaving=True)
        return reply

    def _answer(self, command: wire.Command | Unreadable) -> wire.Reply:
        match command:
            case wire.Load():
                return self._load_model(command.plan)
            case wire.Prepare():
                return self._prepare(command.batch_size)
            case wire.Measure():
                return self._measure(command)
            case wire.Release():
                return self._release(command.batch_size)
            case wire.Lap():
                return self._lap(command)
            case wire.CompareLaps():
                first, second = (self._last_lap.get(lane) for lane in (0, 1))
                kept = [lane.outputs if lane else None for lane in (first, second)]
                return outputs.agreement(kept[0] or [None], kept[1] or [None])
            case Unreadable():
                raise BatchpeakError(
                    f"the measuring process does not know this command: {command.reason}",
                    title="not understood",
                )
            case _:  # a Stop that came too late to interrupt anything
                return wire.Stopped()

    def _load_model(self, plan: Plan) -> wire.ReadyReply:
        begin = self._outside.clock()
        self._let_go()
        chosen = self._outside.find_device(plan.device)
        threads = Threads(plan)
        threads.hold()
        loaded = self._outside.load(plan, chosen.name)
        _restore_signals()
        threads.hold()
        # Parameters that are converted in inference mode could not be compiled.
        with torch.inference_mode(mode=False):
            self._model = configure(loaded, plan, chosen)
        self._compiled = self._model.compiled is not None
        self._threads = threads
        # What is here now lives as long as the model: collecting before a block need not look at it again.
        gc.collect()
        gc.freeze()
        self._inbox.stop.check()
        return wire.ReadyReply(
            name=plain(loaded.name),
            parameters=loaded.parameters,
            input=plain(loaded.input),
            unit=plain(loaded.unit),
            load_s=(self._outside.clock() - begin) / SECOND,
            description=plain(loaded.description),
            threads=threads.count if loaded.ignored_threads else torch.get_num_threads(),
            device=chosen.name,
            timing=chosen.timing,
            input_mb_per_item=loaded.input_mb_per_item,
            torch=str(torch.__version__),
        )

    def _prepare(self, batch_size: int) -> wire.PreparedReply | wire.FailedReply:
        model, clock, stop = self._ready(), self._outside.clock, self._inbox.stop
        self._sizes.pop(batch_size, None)
        only = model.loaded.only_batch_size
        if only not in (None, batch_size):
            failure = Failure(
                "error", f"takes batch size {only} only", plain(model.loaded.batch_hint), of_size=True
            )
            return wire.FailedReply(failure)
        inputs = model.make_inputs(batch_size)
        stop.check()
        before = model.device.memory_before()
        step, output, cold_ns = self._cold_call(model, inputs)
        self._last_size = batch_size
        peak = model.device.memory_peak()
        items = outputs.item_count(output, batch_size)
        finite, all_zero = outputs.looks(output)
        del output
        stop.check()
        # A cold call that compiled took memory for the compiler, not for the call.
        if cold_ns < LONG_COLD_NS or self._compiled:
            before = model.device.memory_before()
            step()
            peak = model.device.memory_peak()
        warm = warm_up(step, clock, stop)
        calibration = calibrate(warm.call_ns)
        self._sizes[batch_size] = Size(
            step, calibration, warm.call_ns, batch_size if items is None else items
        )
        return wire.PreparedReply(
            Prepared(
                batch_size=batch_size,
                cold_ms=cold_ns / 1e6,
                calls_per_block=calibration.calls,
                warmup_calls=warm.calls,
                warmup_s=warm.elapsed_ns / SECOND,
                group=calibration.group,
                memory_mb=memory.growth_mb(before, peak) if model.memory_is_known else None,
                effective_batch_size=items,
                finite=finite,
                all_zero=all_zero,
                compiled=None if model.compiled is None else self._compiled,
            )
        )

    def _cold_call(self, model: Configured, inputs: Any) -> tuple[Step, object, int]:
        """The first call: its step, what it returned, its ns. Falls back to eager for good when the compiler fails at it."""
        step = model.step(inputs, compiled=self._compiled)
        try:
            output, cold_ns = time_once(step, self._outside.clock)
        except Exception as error:
            if not (self._compiled and is_compiler_failure(error)) or classify(error).kind == "oom":
                raise
            forget(error)
        else:
            return step, output, cold_ns
        step = model.step(inputs, compiled=False)
        output, cold_ns = time_once(step, self._outside.clock)
        # Only now: where eager fails too it is the model's failure, of this size alone.
        self._compiled = False
        return step, output, cold_ns

    def _measure(self, command: wire.Measure) -> wire.BlockReply:
        model = self._ready()
        size = self._sizes.get(command.batch_size)
        if size is None:
            raise BatchpeakError(
                f"batch size {command.batch_size} was not made ready before.", title="not prepared"
            )
        clock, stop = self._outside.clock, self._inbox.stop
        switched, self._last_size = self._last_size != command.batch_size, command.batch_size
        self._other_load.begin()
        with quiet_collector():
            # Last of all before the timing: collecting and reading counters push the model out of the caches.
            approach(size.step, size.calibration, size.call_ns, clock, stop, switched=switched)
            faults = counters.minor_faults()
            timed = time_block(size.step, size.calibration, clock, stop)
            after = counters.minor_faults()
        other_load = self._other_load.end()
        group = size.calibration.group
        calls = len(timed.group_ns) * group
        longer = lengthened(size.calibration, timed)
        self._sizes[command.batch_size] = replace(size, calibration=longer)
        return wire.BlockReply(
            Block(
                batch_size=command.batch_size,
                calls=calls,
                seconds=timed.total_ns / SECOND,
                call_ms=tuple(time / group / 1e6 for time in timed.group_ns),
                items=calls * size.items_per_call,
                group=group,
                faults=None if faults is None or after is None else after - faults,
                other_load=other_load,
                slowed_by=model.device.slowed_by(),
                round=command.round,
            )
        )

    def _lap(self, command: wire.Lap) -> wire.LapDone:
        model = self._ready()
        if self._race is None or self._race[0] != command.images:
            self._lanes.clear()
            self._last_lap.clear()
            self._race = None
            self._race = (command.images, model.make_inputs(command.images))
        inputs = self._race[1]
        key = (command.lane, command.images, command.batch_size)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = lane_of(
                inputs,
                command.images,
                command.batch_size,
                lambda part: model.step(part, compiled=self._compiled),
            )
        self._last_size = None
        reply = run_lap(
            lane,
            command,
            self._outside.clock,
            self._inbox.stop,
            self._send,
            copy_outputs=model.device.synchronize is not None,
        )
        self._last_lap[command.lane] = lane
        return reply

    def _ready(self) -> Configured:
        if self._model is None or self._threads is None:
            raise BatchpeakError("a model must be loaded before it is measured.", title="no model")
        self._threads.hold()
        return self._model

    def _release(self, batch_size: int | None) -> wire.Done:
        if batch_size is not None:
            self._sizes.pop(batch_size, None)
            return wire.Done()
        self._sizes.clear()
        self._forget_race()
        self._last_size = None
        gc.collect()
        if self._model is not None:
            self._model.device.empty_cache()
        return wire.Done()

    def _let_go(self) -> None:
        """Forget the model and all made for it, so that the next one finds the memory free."""
        old = self._model
        self._sizes.clear()
        self._forget_race()
        self._last_size = None
        self._model = None
        if old is not None and old.compiled is not None:
            torch._dynamo.reset()  # noqa: SLF001 - documented; the compiled graphs hold the old model
        gc.unfreeze()
        gc.collect()
        if old is not None:
            chosen = old.device
            del old
            chosen.empty_cache()

    def _let_go_after_failure(self, command: wire.Command | Unreadable) -> bool:
        """Nothing of a failed batch stays: memory held after a failure makes sizes fail that fitted before.

        False when the device does not recover: after a failed assertion in a kernel every call to CUDA fails in that process.
        """
        if isinstance(command, wire.Prepare | wire.Measure):
            self._sizes.pop(command.batch_size, None)
        elif isinstance(command, wire.Lap):
            self._forget_race()
        self._last_size = None
        gc.collect()
        if self._model is None:
            return True
        chosen = self._model.device
        try:
            if chosen.synchronize is not None:
                chosen.synchronize()
            chosen.empty_cache()
        except RuntimeError:
            return False
        return True

    def _forget_race(self) -> None:
        self._race = None
        self._lanes.clear()
        self._last_lap.clear()


def _restore_signals() -> None:
    """The ways in which the session ends this process, whatever the user's code made of them."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
