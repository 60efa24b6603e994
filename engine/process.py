"""One measuring process: started, spoken to over its pipes, and ended by a ladder whose rungs are timed."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import site
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

import msgspec

from engine import wire
from engine.errors import WorkerLostError

RUNG_S = 0.9
"""How long each rung of the ladder waits; two of them must end a deaf process within 2 s."""
KEPT_LINES = 40
_CHUNK = 65536


class Cancelled(Exception):  # noqa: N818 - not an error: the person asked for it
    """The command in progress was given up because `cancel` was called."""


def worker_command() -> list[str]:
    """How a worker is started. -P: a user's own `engine/` in the current folder must not be picked up instead of ours."""
    return [sys.executable, "-P", "-m", "engine.worker"]


class WorkerProcess:
    """A worker that is running. Used from one thread, except for `cancel`, which any thread or signal handler may call.

    The parent-death signal of Linux follows the *thread* that started the process: make it in a thread that lives on.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        command: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.environment = dict(environment)
        self._clock = clock
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        # A plain flag: setting an Event takes a lock, and a signal handler may run while its own thread holds that lock.
        self._cancelled = False
        self._stopping_since: float | None = None
        self._rung = 0
        self._buffer = b""
        self._stderr_rest = b""
        self._last_lines: deque[str] = deque(maxlen=KEPT_LINES)
        try:
            self._process = subprocess.Popen(
                list(command or worker_command()),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, **_import_path(_HOME), **environment},
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._wake_read)
            os.close(self._wake_write)
            raise WorkerLostError(f"it could not be started: {error}.") from error
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        self._stderr = cast("IO[bytes]", self._process.stderr)
        self._selector = selectors.DefaultSelector()
        for stream in (self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream.fileno(), selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines that the worker (the user's code, C libraries) wrote to its error or standard output."""
        return tuple(self._last_lines)

    def cancel(self) -> None:
        """Give up the command in progress, or the next one. Returns at once; the thread in `request` climbs the ladder."""
        self._cancelled = True
        with contextlib.suppress(
            BlockingIOError, OSError
        ):  # full: a wake-up is on its way; closed: nothing to wake
            os.write(self._wake_write, b"x")

    def forget_cancel(self) -> None:
        """Make the worker usable for a next run after a cancel that it obeyed."""
        self._cancelled = False
        self._stopping_since = None
        self._rung = 0
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 64):
                pass

    def request(self, command: wire.Command) -> wire.Reply:
        """Send a command, wait for its final reply. Raises Cancelled, or WorkerLostError when the process ends."""
        *_, last = self.replies(command)
        return last

    def replies(self, command: wire.Command) -> Iterator[wire.Reply]:
        """Send a command; yields its steps as they come, last the final reply. Raises as `request` does."""
        if self._given_up():
            raise Cancelled
        self._send(command)
        final = False
        while not final:
            reply = self._next_reply()
            if isinstance(reply, wire.Hello):
                continue
            if isinstance(reply, wire.Stopped):
                raise Cancelled
            final = not isinstance(reply, wire.RaceStep)
            if final and self._given_up():
                # It answered just before it read the stop; the Stopped that follows belongs to nothing.
                self._await_stopped()
                raise Cancelled
            yield reply

    def close(self) -> None:
        """End the process and its group, however deaf it is, and reap it. Never takes longer than two rungs."""
        if self.alive:
            with contextlib.suppress(OSError):
                self._send_quietly(wire.Bye())
                self._stdin.close()
            for rung in (signal.SIGTERM, signal.SIGKILL):
                if self._wait(RUNG_S):
                    break
                self._kill_group(rung)
            self._process.wait()
        # User code may have left children behind in the group.
        self._kill_group(signal.SIGKILL)
        self._selector.close()
        for stream in (self._stdin, self._stdout, self._stderr):
            with contextlib.suppress(OSError):
                stream.close()
        # Forgotten before they are closed: `cancel` in another thread must not write to a number that is used anew.
        wake = (self._wake_read, self._wake_write)
        self._wake_read = self._wake_write = -1
        for number in wake:
            with contextlib.suppress(OSError):
                os.close(number)

    def _next_reply(self) -> wire.Reply:
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                try:
                    return wire.decode_reply(line)
                except msgspec.DecodeError as error:
                    raise WorkerLostError(f"it sent a line that is no reply: {error}.") from error
            if self._given_up() and self._stopping_since is None:
                self._stopping_since = self._clock()
                self._send_quietly(wire.Stop())
            timeout = 1.0
            if self._stopping_since is not None:
                timeout = self._stopping_since + RUNG_S * (self._rung + 1) - self._clock()
                if timeout <= 0:
                    self._kill_group((signal.SIGTERM, signal.SIGKILL)[min(self._rung, 1)])
                    self._rung += 1
                    continue
            ready = self._selector.select(timeout)
            ended = self._read({key.fd for key, _ in ready})
            if ended or (not ready and not self.alive):
                self._reap()
                if self._given_up():
                    raise Cancelled
                raise self._lost()

    def _read(self, ready: set[int]) -> bool:
        """Take in what the descriptors hold; True when the reply stream has ended."""
        if self._wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 64)
        if self._stderr.fileno() in ready:
            self._drain_stderr()
        if self._stdout.fileno() not in ready:
            return False
        try:
            chunk = os.read(self._stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        self._buffer += chunk
        return not chunk

    def _drain_stderr(self) -> None:
        try:
            chunk = os.read(self._stderr.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._selector.unregister(self._stderr.fileno())
        *lines, self._stderr_rest = (self._stderr_rest + chunk).split(b"\n")
        self._stderr_rest = self._stderr_rest[-_CHUNK:]
        self._last_lines.extend(line.decode("utf-8", "replace")[:500] for line in lines)

    def _given_up(self) -> bool:
        return self._cancelled

    def _await_stopped(self) -> None:
        with contextlib.suppress(Cancelled):
            while not isinstance(self._next_reply(), wire.Stopped):
                pass

    def _lost(self) -> WorkerLostError:
        with contextlib.suppress(KeyError, ValueError):
            self._drain_stderr()
        code = self._process.returncode
        number = -code if code is not None and code < 0 else None
        if number is not None:
            name = signal.Signals(number).name
            text = (
                f"it was killed by the system ({name})."
                if number == signal.SIGKILL
                else f"it was ended by {name}."
            )
        else:
            text = f"it left with exit code {code}."
        if self._stderr_rest.strip():  # last words without a line end
            self._last_lines.append(self._stderr_rest.decode("utf-8", "replace")[:500])
            self._stderr_rest = b""
        return WorkerLostError(text, signal=number, last_lines=self.last_lines)

    def _send(self, command: wire.Command) -> None:
        try:
            self._stdin.write(wire.encode(command))
        except OSError as error:
            self._reap()
            raise self._lost() from error

    def _send_quietly(self, command: wire.Command) -> None:
        with contextlib.suppress(OSError, ValueError):  # the process is on its way out already
            self._stdin.write(wire.encode(command))

    def _wait(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _reap(self) -> None:
        """Wait for a process whose reply stream has ended; one that only closed it is of no use and is ended."""
        if not self._wait(RUNG_S):
            self._kill_group(signal.SIGKILL)
            self._process.wait()

    def _kill_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


_HOME = Path(__file__).resolve().parents[1]


def _import_path(home: Path) -> dict[str, str]:
    """PYTHONPATH under which the child finds this very `engine`; nothing when it is installed where any Python looks.

    There it would do harm: PYTHONPATH comes before the standard library, whose names some packages take.
    """
    if home in {Path(folder).resolve() for folder in (*site.getsitepackages(), site.getusersitepackages())}:
        return {}
    inherited = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": str(home) + (os.pathsep + inherited if inherited else "")}
