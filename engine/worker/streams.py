"""The worker's two private streams, out of reach of the user's code: commands come in, replies go out."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass

from engine import wire


@dataclass(slots=True)
class Streams:
    """Descriptors of this process only: not inherited by programs it starts, closed in its forks (-1 there)."""

    commands: int
    replies: int

    def close_in_child(self) -> None:
        """A fork must neither write replies nor keep the session waiting for an end of stream that never comes."""
        for number in (self.commands, self.replies):
            with contextlib.suppress(OSError):  # the user's code may have closed it in the fork
                os.close(number)
        self.commands = self.replies = -1

    def send(self, reply: wire.Reply) -> None:
        """Write one reply whole. Leaves the process when nobody reads any more, or when this is a fork of the worker."""
        if self.replies < 0:
            os._exit(0)
        line = memoryview(wire.encode(reply))
        try:
            while line:
                line = line[os.write(self.replies, line) :]
        except BrokenPipeError:
            os._exit(0)


def take_over() -> Streams:
    """Move stdin and stdout to private descriptors. What prints goes to stderr from here on, and `input()` meets an end of file.

    Descriptors, not `sys.stdout`, because C libraries and child processes write to the numbers.
    """
    streams = Streams(commands=os.dup(0), replies=os.dup(1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started with stderr closed: prints go nowhere
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    # Line by line, so that the last words of a process that dies are not lost in a buffer.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=streams.close_in_child)
    return streams


def leave(code: int = 0) -> None:
    """End the process now: neither atexit functions nor the threads of the user's code are waited for."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(
            Exception
        ):  # a stream that the user's code closed or replaced must not keep us
            stream.flush()
    os._exit(code)
