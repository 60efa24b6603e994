"""Commands in their order, and stops that hit the command they were meant for and no other."""

from __future__ import annotations

import pytest

from engine import wire
from engine.worker.inbox import Inbox, StopRequested, Unreadable


def inbox_of(*chunks: bytes) -> tuple[Inbox, list[str]]:
    """An inbox that has read these chunks to their end, and what it did there."""
    waiting = list(chunks)
    ended: list[str] = []
    inbox = Inbox(lambda: waiting.pop(0) if waiting else b"", lambda: ended.append("left"))
    inbox.listen()
    return inbox, ended


def lines(*commands: wire.Command) -> bytes:
    return b"".join(map(wire.encode, commands))


def test_commands_are_whole_however_the_pipe_cuts_them() -> None:
    sent = lines(wire.Prepare(8), wire.Measure(8, 2), wire.Bye())
    inbox, ended = inbox_of(*(sent[place : place + 7] for place in range(0, len(sent), 7)))
    assert [inbox.take() for _ in range(3)] == [wire.Prepare(8), wire.Measure(8, 2), wire.Bye()]
    assert ended == ["left"]


def test_a_stop_raises_the_flag_for_the_command_before_it_and_not_for_the_next() -> None:
    inbox, _ = inbox_of(lines(wire.Prepare(1), wire.Stop(), wire.Prepare(2)))
    assert inbox.take() == wire.Prepare(1)
    with pytest.raises(StopRequested):
        inbox.stop.check()
    inbox.stopped()
    assert inbox.take() == wire.Prepare(2)
    inbox.stop.check()


def test_a_stop_that_interrupted_nothing_is_answered_on_its_own() -> None:
    inbox, _ = inbox_of(lines(wire.Prepare(1), wire.Stop(), wire.Prepare(2)))
    assert inbox.take() == wire.Prepare(1)
    # It was done before anyone looked at the flag: its own reply is sent, and then that of the stop.
    assert inbox.take() == wire.Stop()
    assert inbox.take() == wire.Prepare(2)
    inbox.stop.check()


def test_a_line_that_is_no_command_is_handed_on_to_be_answered() -> None:
    inbox, _ = inbox_of(b"\n", b'{"do": "dance"}\n', lines(wire.Bye()))
    answer = inbox.take()
    assert isinstance(answer, Unreadable)
    assert "dance" in answer.reason
    assert inbox.take() == wire.Bye()


def test_a_stream_that_breaks_ends_like_one_that_is_closed() -> None:
    def broken() -> bytes:
        raise OSError("the other end is gone")

    ended: list[str] = []
    Inbox(broken, lambda: ended.append("left")).listen()
    assert ended == ["left"]
