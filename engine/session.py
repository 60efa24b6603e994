"""A session: one warm worker, and runs one after another through it, each a stream of events that is stored before it is seen."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from engine import host
from engine.events import AnyEvent
from engine.plan import Plan
from engine.process import WorkerProcess
from engine.results import Measurement
from engine.run import Run, Sink, Surroundings
from engine.runner import LoadedWorker, load_into


class Session:
    """Owns the worker. `run` blocks and belongs to one thread; `cancel`, `pause` and `resume` may come from any thread or from a
    signal handler. Close it (or use it as a context manager) to end the worker.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        new_id: Callable[[], str] = lambda: secrets.token_hex(4),
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC),
        host_facts: Callable[[], dict[str, Any]] = host.host_facts,
        free_mb: Callable[[], float | None] | None = None,
    ) -> None:
        self._command = command
        self._clock = clock
        self._new_id = new_id
        self._surroundings = Surroundings(clock, utc_now, host_facts, free_mb or _free_mb)
        self._warm: tuple[tuple[object, ...], LoadedWorker] | None = None
        # A tuple that is replaced, never changed: a signal handler may look at it at any moment.
        self._processes: tuple[WorkerProcess, ...] = ()
        self._cancelled = False
        self._paused = False
        self._running = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(
        self,
        plan: Plan,
        *,
        prior: Sequence[Measurement] = (),
        resumes: str | None = None,
        sink: Sink | None = None,
        run_id: str | None = None,
    ) -> Iterator[AnyEvent]:
        """Measure as planned; yields the run's events, each after `sink` has it. The last one is run-finished, whatever happens.

        `prior` are measurements taken over from the run `resumes`. Nothing is timed while the consumer holds an event: the next
        block starts when the next event is drawn. An unexpected error is raised after run-finished.
        """
        self._cancelled = self._paused = False
        self._running = True
        run = Run(self, self._surroundings, plan, tuple(prior), resumes, sink, run_id or self._new_id())
        try:
            yield from run.stream()
        finally:
            self._running = False

    def cancel(self) -> None:
        """End the run that is going on, within 2 s. What was measured stays. Without a run nothing happens."""
        if self._running:
            self._cancelled = True
            # All of them: with `--fresh` any of several may be in a call.
            for process in self._processes:
                process.cancel()
            self._wake()

    def pause(self) -> None:
        """Stop between two blocks until `resume`; the block in progress ends first."""
        self._paused = True

    def resume(self) -> None:
        """Go on after `pause`."""
        self._paused = False
        self._wake()

    def close(self) -> None:
        """End the worker. A run in progress must have ended before (cancel it, and draw its events to the end)."""
        self.drop_worker()
        for number in (self._wake_read, self._wake_write):
            with contextlib.suppress(OSError):
                os.close(number)
        self._wake_read = self._wake_write = -1

    # What follows is for the run of this module.

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    @property
    def paused(self) -> bool:
        return self._paused

    def wait_while_paused(self) -> None:
        """Sleep until `resume` or `cancel`."""
        while self._paused and not self._cancelled:
            select.select([self._wake_read], [], [])
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 64)

    def warm_worker(self, plan: Plan) -> LoadedWorker | None:
        """The worker of an earlier run, when it is alive and was loaded in the same way; another one is ended."""
        if self._warm is not None:
            key, worker = self._warm
            if key == load_key(plan) and worker.process.alive:
                worker.process.forget_cancel()
                self._heed(worker.process)
                return worker
            self.drop_worker()
        return None

    def start_worker(self, plan: Plan, index: int) -> LoadedWorker:
        """A new worker with the plan's model loaded. Raises LoadFailedError, WorkerLostError or Cancelled."""
        process = WorkerProcess(
            host.allocator_environment(plan.allocator), command=self._command, clock=self._clock
        )
        self._heed(process)
        return load_into(process, plan, index)

    def keep_warm(self, plan: Plan, worker: LoadedWorker) -> None:
        """Keep a worker for the next run of the same model and options."""
        self._warm = (load_key(plan), worker)

    def drop_worker(self) -> None:
        """End the warm worker, if there is one."""
        if self._warm is not None:
            self._warm[1].process.close()
            self._warm = None

    def _heed(self, process: WorkerProcess) -> None:
        """Let `cancel` reach the process; one that came a moment ago reaches it now."""
        self._processes = (*(held for held in self._processes if held is not process and held.alive), process)
        if self._cancelled:
            process.cancel()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._wake_write, b"x")


def _free_mb() -> float:
    return host.memory().available / 1e6


def load_key(plan: Plan) -> tuple[object, ...]:
    """What a worker must have been loaded with to serve the plan. A model's file that changed on disk is another model."""
    path = Path(plan.model.rpartition(":")[0] or plan.model)
    changed: object = None
    with contextlib.suppress(OSError, ValueError):
        facts = path.stat()
        changed = (facts.st_mtime_ns, facts.st_size)
    return (
        plan.model,
        changed,
        tuple(sorted(plan.model_args.items())),
        plan.weights,
        plan.trust,
        plan.device,
        plan.threads,
        plan.inter_op_threads,
        plan.dtype,
        plan.autocast,
        plan.channels_last,
        plan.compile,
        plan.transfer,
        plan.input,
        plan.image_dir,
        plan.allocator,
        plan.seed,  # random weights and inputs are made from it
    )
