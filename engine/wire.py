"""The words between session and worker: commands on the worker's stdin, replies on its stdout, one JSON line each.

The session turns the replies into events (`engine.events`); the payloads (Prepared, Block, Failure) are the same values in both.
One command is answered by one final reply; RaceStep may come before a LapDone. Nothing is sent while a timed block runs.
"""

from __future__ import annotations

import msgspec

from engine.plan import Plan
from engine.results import Block, Failure, Prepared


class Load(msgspec.Struct, frozen=True, tag_field="do", tag="load"):
    """Load the plan's model with its options. Sent again for another model or options, the old ones are let go first."""

    plan: Plan


class Prepare(msgspec.Struct, frozen=True, tag_field="do", tag="prepare"):
    """Make inputs, time the cold call, measure memory, warm up, calibrate. Answered by PreparedReply or FailedReply."""

    batch_size: int


class Measure(msgspec.Struct, frozen=True, tag_field="do", tag="measure"):
    """One block at a prepared size. Answered by BlockReply or FailedReply."""

    batch_size: int
    round: int = 0


class Release(msgspec.Struct, frozen=True, tag_field="do", tag="release"):
    """Let go of a size's inputs; without a size of all that was made for sizes and races. Answered by Done."""

    batch_size: int | None = None


class Lap(msgspec.Struct, frozen=True, tag_field="do", tag="lap"):
    """One lane of a race, once: `images` images in calls of `batch_size` (the last call takes what is left).

    Both lanes feed the same images in the same order. Warm-up calls are made before, untimed, at each lane's first lap.
    """

    lane: int
    images: int
    batch_size: int
    round: int = 0


class CompareLaps(msgspec.Struct, frozen=True, tag_field="do", tag="compare-laps"):
    """Compare the outputs of the last lap of lanes 0 and 1. Answered by Agreement."""


class Bye(msgspec.Struct, frozen=True, tag_field="do", tag="bye"):
    """Leave."""


class Stop(msgspec.Struct, frozen=True, tag_field="do", tag="stop"):
    """Abandon the command in progress at the next call boundary; it is then answered by Stopped."""


Command = Load | Prepare | Measure | Release | Lap | CompareLaps | Bye | Stop


class Hello(msgspec.Struct, frozen=True, tag_field="reply", tag="hello"):
    """First line of a worker, as soon as it reads commands (torch may still be loading)."""

    pid: int


class ReadyReply(msgspec.Struct, frozen=True, tag_field="reply", tag="ready"):
    name: str
    parameters: int | None
    input: str
    unit: str
    load_s: float
    description: str
    threads: int | None
    device: str
    timing: str
    input_mb_per_item: float | None = None
    torch: str = ""
    """Version of torch in the worker, e.g. "2.13.0+cpu"."""


class PreparedReply(msgspec.Struct, frozen=True, tag_field="reply", tag="prepared"):
    prepared: Prepared


class BlockReply(msgspec.Struct, frozen=True, tag_field="reply", tag="block"):
    block: Block


class FailedReply(msgspec.Struct, frozen=True, tag_field="reply", tag="failed"):
    """The command could not be done. `usage` when the person must change an argument (exit 2), with `remedy`."""

    failure: Failure
    remedy: str = ""
    usage: bool = False
    leaving: bool = False
    """The worker ends after this reply: its device is in a state in which every further call would fail."""


class RaceStep(msgspec.Struct, frozen=True, tag_field="reply", tag="race-step"):
    """Progress of a lap, sent between timed calls, at most 4 a second."""

    lane: int
    done: int
    total: int


class LapDone(msgspec.Struct, frozen=True, tag_field="reply", tag="lap-done"):
    lane: int
    round: int
    batch_size: int
    total_ms: float
    """Wall time of the lane from its first call's start to its last call's end, progress messages taken out, ms."""
    call_ms: tuple[float, ...]


class Agreement(msgspec.Struct, frozen=True, tag_field="reply", tag="agreement"):
    """Whether two lanes gave the same answers: same classes and close values; None when outputs cannot be compared."""

    agree: bool | None
    text: str
    largest_difference: float | None = None


class Done(msgspec.Struct, frozen=True, tag_field="reply", tag="done"):
    pass


class Stopped(msgspec.Struct, frozen=True, tag_field="reply", tag="stopped"):
    pass


Reply = (
    Hello
    | ReadyReply
    | PreparedReply
    | BlockReply
    | FailedReply
    | RaceStep
    | LapDone
    | Agreement
    | Done
    | Stopped
)

_encoder = msgspec.json.Encoder()
_commands: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
_replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def encode(message: Command | Reply) -> bytes:
    """One line of JSON with its newline."""
    return _encoder.encode(message) + b"\n"


def decode_command(line: bytes) -> Command:
    """Raises msgspec.DecodeError for anything that is no command."""
    return _commands.decode(line)


def decode_reply(line: bytes) -> Reply:
    """Raises msgspec.DecodeError for anything that is no reply."""
    return _replies.decode(line)
