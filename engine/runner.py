"""The real runner: times blocks in worker processes, survives their loss, and asks the memory before a size is tried."""

from __future__ import annotations

import sysconfig
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from engine import wire
from engine.errors import BatchpeakError, WorkerLostError
from engine.plan import Plan
from engine.process import WorkerProcess
from engine.results import Block, Failure, Prepared

MOST_LOSSES = 3
"""After so many lost workers in a row nothing measured by this model can be relied on: the run ends."""
MOST_FRESH = 8
"""Workers of `--fresh` that are kept alive at once; each holds its own torch."""
PROBE_SIZE = 2
PROBE_FROM_MB = 32.0
"""Inputs above this size are not fed to a model of which nothing is known: a tiny batch is measured first."""
PROBE_STEP = 8
PROBE_SHARE = 0.25
"""A probe is to be harmless: it may take this part of the memory at the most."""
FAR = 64
"""A forecast over more than this factor is no forecast: what a call takes whatever its size would count this often."""
USABLE_SHARE = 0.9
_Raw = TypeVar("_Raw", Block, Prepared)


class LoadFailedError(BatchpeakError):
    """The model could not be loaded in the worker; `usage` when an argument has to change."""

    def __init__(self, message: str, *, title: str, remedy: str, usage: bool) -> None:
        super().__init__(message, title=title, remedy=remedy)
        self.usage = usage


@dataclass(slots=True)
class LoadedWorker:
    """A running worker with the plan's model in it."""

    process: WorkerProcess
    ready: wire.ReadyReply
    index: int
    prepared: set[int] = field(default_factory=set)


def load_into(process: WorkerProcess, plan: Plan, index: int) -> LoadedWorker:
    """Load the plan's model into a fresh process. Raises LoadFailedError; the process is then closed."""
    try:
        reply = process.request(wire.Load(plan))
        if isinstance(reply, wire.ReadyReply):
            return LoadedWorker(process, reply, index)
        if isinstance(reply, wire.FailedReply):
            failure = reply.failure
            where = (
                f" ({failure.where})"
                if failure.where and Path(failure.where).name not in failure.message
                else ""
            )
            raise LoadFailedError(
                failure.message + where, title=failure.title, remedy=reply.remedy, usage=reply.usage
            )
        raise WorkerLostError(f"it answered {type(reply).__name__} to load.")
    except WorkerLostError as lost:
        process.close()
        raise WorkerLostError(
            f"{lost.message.removesuffix('.')} while the model was loaded.",
            signal=lost.signal,
            last_lines=lost.last_lines,
        ) from lost
    except BaseException:
        process.close()
        raise


class WorkerRunner:
    """Implements `measure.Runner` over worker processes.

    `start` makes a worker with the model loaded; it is called again after a loss, and per size with `plan.fresh`.
    `on_prepared` hears of sizes made ready again in a later worker; `free_mb` says how much memory is free now.
    """

    def __init__(
        self,
        plan: Plan,
        first: LoadedWorker | None,
        start: Callable[[], LoadedWorker],
        *,
        free_mb: Callable[[], float | None],
        on_prepared: Callable[[Prepared], None],
    ) -> None:
        self._plan = plan
        self._start = start
        self._free_mb = free_mb
        self._on_prepared = on_prepared
        self._workers: OrderedDict[int, LoadedWorker] = OrderedDict()
        if first is not None:
            self._workers[0] = first
        self._known: dict[int, Prepared] = {}
        self._losses = 0

    @property
    def current(self) -> LoadedWorker | None:
        """The worker that is alive and shared by all sizes, if there is one."""
        return self._workers.get(0)

    def live(self) -> list[LoadedWorker]:
        """All workers that this runner holds."""
        return list(self._workers.values())

    def prepare(self, batch_size: int) -> Prepared | Failure:
        refused = self._refused_by_memory(batch_size)
        if refused is not None:
            return refused
        return self._prepare(batch_size)

    def block(self, batch_size: int, round_index: int) -> Block | Failure:
        worker = self._worker(batch_size)
        if batch_size not in worker.prepared:
            prepared = self._prepare(batch_size)
            if isinstance(prepared, Failure):
                return prepared
            self._on_prepared(prepared)
            worker = self._worker(batch_size)
        reply = self._request(batch_size, worker, wire.Measure(batch_size, round_index))
        if isinstance(reply, wire.BlockReply):
            self._losses = 0
            return _of_worker(reply.block, worker.index)
        if isinstance(reply, Failure):
            return reply
        raise _unexpected(reply)

    def release(self, batch_size: int) -> None:
        """Let go of a size that will not be measured again."""
        if self._plan.fresh:
            worker = self._workers.pop(batch_size, None)
            if worker is not None:
                worker.process.close()
            return
        worker = self._workers.get(0)
        if worker is not None and batch_size in worker.prepared:
            self._request(batch_size, worker, wire.Release(batch_size))
            worker.prepared.discard(batch_size)

    def release_all(self) -> None:
        """Let go of everything made in the shared worker."""
        worker = self.current
        if worker is not None and not self._plan.fresh:
            self._request(0, worker, wire.Release())
            worker.prepared.clear()

    def close_fresh(self) -> None:
        """End the workers that belong to single sizes."""
        if self._plan.fresh:
            while self._workers:
                self._workers.popitem()[1].process.close()

    def _prepare(self, batch_size: int) -> Prepared | Failure:
        worker = self._worker(batch_size)
        reply = self._request(batch_size, worker, wire.Prepare(batch_size))
        if isinstance(reply, wire.PreparedReply):
            worker.prepared.add(batch_size)
            self._known[batch_size] = reply.prepared
            return _of_worker(reply.prepared, worker.index)
        if isinstance(reply, Failure):
            return reply
        raise _unexpected(reply)

    def _worker(self, batch_size: int) -> LoadedWorker:
        key = batch_size if self._plan.fresh else 0
        worker = self._workers.get(key)
        if worker is None:
            while len(self._workers) >= MOST_FRESH:
                self._workers.popitem(last=False)[1].process.close()
            worker = self._workers[key] = self._start()
        self._workers.move_to_end(key)
        return worker

    def _request(self, batch_size: int, worker: LoadedWorker, command: wire.Command) -> wire.Reply | Failure:
        try:
            reply = worker.process.request(command)
        except WorkerLostError as lost:
            self._drop(worker)
            self._losses += 1
            if self._losses >= MOST_LOSSES:
                raise
            return _failure_of_loss(lost, batch_size)
        if isinstance(reply, wire.FailedReply):
            worker.prepared.discard(batch_size)
            if reply.leaving:
                self._drop(worker)
            return reply.failure
        return reply

    def _drop(self, worker: LoadedWorker) -> None:
        """End a worker that is lost or leaving; the next size asked for starts another."""
        for key, held in list(self._workers.items()):
            if held is worker:
                del self._workers[key]
        worker.process.close()

    def _refused_by_memory(self, batch_size: int) -> Failure | None:
        if self._plan.force or not self._plan.device.startswith("cpu"):
            return None
        free = self._free_mb()
        if free is None:
            return None
        inputs = self._input_mb(batch_size)
        if inputs <= free * USABLE_SHARE:
            self._probe_below(batch_size, inputs, free * USABLE_SHARE)
        needed, what = inputs, " for its inputs alone"
        if inputs <= free * USABLE_SHARE:
            needed, what = forecast_mb(self._known, batch_size) or 0.0, ""
        if needed <= free * USABLE_SHARE:
            return None
        return Failure(
            kind="forecast",
            title="would not fit in memory",
            message=f"needs about {_gb(needed)}{what}, {_gb(free)} free: skipped, --force to try",
        )

    def _probe_below(self, batch_size: int, inputs_mb: float, usable_mb: float) -> None:
        """Look at sizes in between, as long as the forecast refuses or reaches too far, so that neither happens by mistake."""
        while (probe := next_probe(self._known, batch_size, inputs_mb, usable_mb)) is not None:
            told = self._prepare(probe)
            self.release(probe)
            if isinstance(told, Failure) or told.memory_mb is None:
                return

    def _input_mb(self, batch_size: int) -> float:
        worker = next(iter(self._workers.values()), None)
        return batch_size * ((worker.ready.input_mb_per_item if worker else None) or 0.0)


def forecast_mb(known: dict[int, Prepared], batch_size: int) -> float | None:
    """Memory of a call at `batch_size`, MB, in proportion from the largest smaller size that was measured; None if unknown."""
    smaller = [
        (size, prepared.memory_mb)
        for size, prepared in known.items()
        if size < batch_size and prepared.memory_mb is not None
    ]
    if not smaller:
        return None
    size, memory = max(smaller)
    return memory * batch_size / size


def next_probe(known: dict[int, Prepared], batch_size: int, inputs_mb: float, usable_mb: float) -> int | None:
    """The size to look at before `batch_size` is forecast; None when the forecast may be relied on, or nothing can better it."""
    nearest = max((size for size in known if size < batch_size), default=0)
    if not nearest:
        return PROBE_SIZE if inputs_mb > PROBE_FROM_MB and batch_size > PROBE_SIZE else None
    near = batch_size <= FAR * nearest or inputs_mb <= PROBE_FROM_MB
    if near and (forecast_mb(known, batch_size) or 0.0) <= usable_mb:
        return None
    probe = nearest * PROBE_STEP
    if 2 * probe > batch_size or (forecast_mb(known, probe) or 0.0) > PROBE_SHARE * usable_mb:
        return None
    return probe


def _of_worker(value: _Raw, index: int) -> _Raw:
    return msgspec.structs.replace(value, worker=index)


def _failure_of_loss(lost: WorkerLostError, batch_size: int) -> Failure:
    tail = f" Its last line: {last_words(lost.last_lines)}" if lost.last_lines else ""
    if lost.signal is None:
        return Failure(kind="error", title=lost.title, message=lost.message + tail)
    return Failure(
        kind="killed",
        title="killed by the system",
        message=f"the measuring process was lost at batch size {batch_size}: {lost.message}{tail}",
    )


def last_words(lines: Sequence[str]) -> str:
    """The line that says most of why a process ended: the last one, or Python's own word on a crash with the place of it."""
    crash = next((at for at, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    if crash is None:
        return lines[-1]
    libraries = (sysconfig.get_path("stdlib"), "site-packages", "<frozen")
    places = (line.strip() for line in lines[crash:] if line.lstrip().startswith("File "))
    place = next((line for line in places if not any(library in line for library in libraries)), "")
    return f"{lines[crash]}{f' at {place}' if place else ''}"


def _unexpected(reply: wire.Reply) -> WorkerLostError:
    return WorkerLostError(f"it gave an answer that fits no question: {type(reply).__name__}.")


def _gb(megabytes: float) -> str:
    gigabytes = megabytes / 1000.0
    return f"{gigabytes:,.0f} GB" if gigabytes >= 9.5 else f"{gigabytes:.1f} GB"
