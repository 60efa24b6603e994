"""Entry of the measuring process: `python -P -m engine.worker`, commands on stdin, replies on stdout."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from engine import wire
from engine.worker.inbox import Inbox
from engine.worker.streams import leave, take_over

if TYPE_CHECKING:
    from engine.models.source import LoadedModel
    from engine.plan import Plan

_PR_SET_PDEATHSIG = 1


def main(load: Callable[[Plan, str], LoadedModel] | None = None) -> None:
    """Run until Bye or the end of the command stream. `load` stands in for `engine.models.load` in tests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    streams = take_over()
    # A crash in a C library then says where, among the last lines that the session shows.
    faulthandler.enable(all_threads=False)
    # At the end of the stream nothing is waited for, not even a call that does not return for minutes.
    inbox = Inbox.of(streams.commands, at_end=lambda: os._exit(0))
    inbox.start()
    streams.send(wire.Hello(os.getpid()))
    # From here on the import of torch, seconds long, runs while the session already knows that we are there.
    from engine.worker.service import Outside, Service

    outside = Outside(clock=time.perf_counter_ns)
    Service(inbox, streams.send, outside if load is None else replace(outside, load=load)).run()
    leave()


def _die_with_parent() -> None:
    """Linux: be killed when the thread that started us ends, even in a call that never lets the reading thread run."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


if __name__ == "__main__":
    main()
