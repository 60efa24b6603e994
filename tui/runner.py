"""The thread that runs sessions, and the only user of `engine.session` in the interface.

The thread rule: this thread only posts messages (`post_message`). It never touches a widget, never reads the app's
state and never uses `call_from_thread`, which would wait for an interface that a slow link may hold up. What crosses
over is frozen and goes through one queue; the app's handlers own everything that is made of it.

One thread serves the app's whole life: the measuring process is told to die with the thread that started it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Protocol

from engine import events
from engine.errors import BatchpeakError, StoreError
from engine.plan import Plan
from engine.results import Measurement
from tui.messages import DeliveriesWaiting
from tui.state import Delivery, Ended, Happened, Saving

BRISK_S = 0.25
"""Between two wake-ups for status and progress: at most 4 a second."""
CALM_S = 1.0
"""Between two wake-ups for figures: the table and the chart are drawn at most once a second."""
HOLD_S = 0.1
"""At most this long the next block waits until the screen is drawn, so that drawing does not fall into timed calls.

A slow link can hold the screen up for much longer; measuring then goes on."""

_AT_ONCE = (events.RunStarted, events.ModelReady, events.RaceFinished, events.RunFinished)
# Not the verdict: it is made of figures and goes with them, or with the tick; on its own it would wake the app once a second more.
_BRISK = (events.Status, events.RaceProgress, events.Warning)


Sink = Callable[[events.AnyEvent], None]
"""Takes every event before the interface does."""


class RunFile(Protocol):
    """What the runner needs of an open run file (`engine.store.RunWriter`)."""

    @property
    def path(self) -> Path: ...

    def write(self, event: events.AnyEvent) -> None: ...

    def close(self) -> None: ...


class SessionLike(Protocol):
    """What the runner needs of `engine.session.Session`; tests script one."""

    def run(
        self,
        plan: Plan,
        *,
        prior: Sequence[Measurement] = (),
        resumes: str | None = None,
        sink: Sink | None = None,
    ) -> Iterator[events.AnyEvent]: ...

    def cancel(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Request:
    """One run to make. `serial` grows by one a run; deliveries carry it."""

    serial: int
    plan: Plan
    prior: tuple[Measurement, ...] = ()
    resumes: str | None = None
    save: bool = True


class Runner:
    """Runs requests one after the other: the next starts when the last event of the one before was delivered."""

    def __init__(
        self,
        post: Callable[[DeliveriesWaiting], object],
        *,
        session_factory: Callable[[], SessionLike],
        open_file: Callable[[events.RunStarted], RunFile],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._post = post
        self._session_factory = session_factory
        self._open_file = open_file
        self._now = now
        self._session: SessionLike | None = None
        self._requests: SimpleQueue[Request | None] = SimpleQueue()
        self._deliveries: SimpleQueue[Delivery] = SimpleQueue()
        self._drawn = threading.Event()
        self._woken_at = -CALM_S
        self._running = 0
        self._cancelled = 0
        self._thread: threading.Thread | None = None

    def start(self, request: Request) -> None:
        """Queue a run. The thread starts with the first one."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="batchpeak-runner", daemon=True)
            self._thread.start()
        self._requests.put(request)

    def take(self) -> tuple[Delivery, ...]:
        """Everything delivered since the last call, in order. For the app's thread."""
        taken: list[Delivery] = []
        while True:
            try:
                taken.append(self._deliveries.get_nowait())
            except Empty:
                return tuple(taken)

    def drawn(self) -> None:
        """The app has drawn what it took; measuring need not wait for it any longer."""
        self._drawn.set()

    def cancel(self, serial: int) -> None:
        """End the run with this number, and any before it, whether or not it has begun."""
        self._cancelled = max(self._cancelled, serial)
        if self._session is not None and self._running == serial:
            self._session.cancel()

    def pause(self) -> None:
        if self._session is not None:
            self._session.pause()

    def resume(self) -> None:
        if self._session is not None:
            self._session.resume()

    def close(self, timeout_s: float = 4.0) -> None:
        """Cancel the run in progress, wait for its last event, end the measuring process. Safe to call twice.

        Cancelling takes 2 s at the most, whatever the model is doing; the thread is given that time and a little more.
        """
        self._requests.put(None)
        self._cancelled = sys.maxsize
        self._drawn.set()
        if self._session is not None:
            self._session.cancel()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)
        if self._session is not None:
            self._session.close()
            self._session = None

    def _serve(self) -> None:
        while (request := self._requests.get()) is not None:
            self._deliver(Ended(request.serial, self._run(request)), at_once=True)

    def _run(self, request: Request) -> BatchpeakError | None:
        """Make one run; returns why it could not go on, or None when its events say how it ended."""
        if request.serial <= self._cancelled:
            return None
        self._running = request.serial
        saver = _Saver(request.serial, self._open_file, self._deliveries.put) if request.save else None
        try:
            if self._session is None:
                self._session = self._session_factory()
            stream = self._session.run(
                request.plan,
                prior=request.prior,
                resumes=request.resumes,
                sink=saver,
            )
            for event in stream:
                self._deliver(Happened(request.serial, event), at_once=isinstance(event, _AT_ONCE))
                if request.serial <= self._cancelled:
                    self._session.cancel()
        except BatchpeakError as error:
            return error
        except Exception as error:  # noqa: BLE001 - the thread's edge: shown as a dialog, the file is kept
            return BatchpeakError(
                f"{type(error).__name__}: {error}",
                title="an internal error ended the run",
                remedy="What was measured is kept. Run again; if it comes back, please report it.",
            )
        finally:
            if saver is not None:
                saver.close()
        return None

    def _deliver(self, delivery: Delivery, *, at_once: bool) -> None:
        """Hand a delivery over; wake the app when it is time, and let it draw before the next block is asked for."""
        self._deliveries.put(delivery)
        brisk = isinstance(delivery, Happened) and isinstance(delivery.event, _BRISK)
        now = self._now()
        if at_once or now - self._woken_at >= (BRISK_S if brisk else CALM_S):
            self._woken_at = now
            self._drawn.clear()
            self._post(DeliveriesWaiting())
            self._drawn.wait(HOLD_S)


class _Saver:
    """A run's sink: the file is made with the first event, so a bad place is told before the worker starts.

    A file that cannot be written is told once, and measuring goes on without it.
    """

    def __init__(
        self,
        serial: int,
        open_file: Callable[[events.RunStarted], RunFile],
        deliver: Callable[[Delivery], object],
    ) -> None:
        self._serial = serial
        self._open_file = open_file
        self._deliver = deliver
        self._file: RunFile | None = None

    def __call__(self, event: events.AnyEvent) -> None:
        try:
            if isinstance(event, events.RunStarted):
                self._file = self._open_file(event)
                self._deliver(Saving(self._serial, self._file.path))
            if self._file is not None:
                self._file.write(event)
        except StoreError as error:
            path, self._file = self._file.path if self._file else None, None
            self._deliver(Saving(self._serial, path, error))

    def close(self) -> None:
        """The run is over; its file is complete."""
        if self._file is not None:
            self._file.close()


def real_session() -> SessionLike:
    """A session with a measuring process of its own; imported late, the first frame does not wait for it."""
    from engine.session import Session

    return Session()


def file_in(directory: Path | None) -> Callable[[events.RunStarted], RunFile]:
    """Opens run files in `directory`, or where run files usually live. The result raises StoreError."""

    def open_file(started: events.RunStarted) -> RunFile:
        from engine import store

        return store.create(started.plan, started.run, started.started_at, directory)

    return open_file
