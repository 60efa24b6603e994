"""The events of a run and their one-line JSON form: the stream is the file is what `--json` prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, get_args

import msgspec

from engine.errors import StoreError
from engine.plan import Kind, Plan
from engine.results import Block, Failure, Prepared, State

SCHEMA = 1
"""Raised when a reader of the older schema would misread a line; more fields alone do not raise it."""

Reason = Literal["completed", "cancelled", "failed", "worker-lost"]
PeakKind = Literal["interior", "plateau", "rising", "falling", "memory", "limit", "none"]


class Event(msgspec.Struct, frozen=True, tag_field="event", kw_only=True):
    """What every line has: the run's id and the seconds since the run's start."""

    run: str
    t: float


class RunStarted(Event, frozen=True, tag="run-started", kw_only=True):
    schema: int = SCHEMA
    kind: Kind
    plan: Plan
    host: dict[str, Any]
    started_at: str
    version: str
    resumes: str | None = None
    """Id of the run whose measurements this one starts from."""


class ModelReady(Event, frozen=True, tag="model-ready", kw_only=True):
    name: str
    parameters: int | None
    input: str
    unit: str
    load_s: float
    description: str = ""
    threads: int | None = None
    """Threads that the worker really uses for one operation."""
    device: str = ""
    timing: str = ""
    """How the device is timed, in words, e.g. "wall time, synchronised"."""
    worker: int = 0


class Latency(msgspec.Struct, frozen=True):
    """Percentiles of one call's wall time, ms; null below the number of calls that the percentile needs."""

    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None


class Confirmed(msgspec.Struct, frozen=True):
    """Throughput in a fresh process that ran nothing but this size, with its 95 % interval."""

    throughput: float
    low: float | None
    high: float | None
    faults_per_call: float | None = None
    agrees: bool = True
    reason: str = ""


class Warned(msgspec.Struct, frozen=True):
    """A doubt about a figure, as a value: its kind, a sentence, what to do, and the numbers behind it."""

    kind: str
    text: str
    remedy: str = ""
    numbers: dict[str, float] = {}


class ErrorText(msgspec.Struct, frozen=True):
    title: str
    message: str


class Point(Event, frozen=True, tag="point", kw_only=True):
    """One batch size as it is known now. Sent again whenever it changes; the last one counts."""

    batch_size: int
    state: State
    throughput: float | None = None
    throughput_low: float | None = None
    throughput_high: float | None = None
    latency_ms: Latency = Latency()
    ms_per_item: float | None = None
    calls: int = 0
    blocks: int = 0
    cold_ms: float | None = None
    memory_mb: float | None = None
    faults_per_call: float | None = None
    effective_batch_size: int | None = None
    confirmed: Confirmed | None = None
    warnings: tuple[Warned, ...] = ()
    error: ErrorText | None = None
    reason: str = ""
    """Why a search tries this size."""
    kept_from: str | None = None
    grouped: int = 1
    """When above 1, calls are timed in groups of this many and the percentiles are those of groups."""
    throughput_mean: float | None = None
    """Items / wall time over every timed call, outliers included; `throughput` is robust against rare interruptions."""

    @property
    def counts_instead(self) -> Confirmed | None:
        """What a fresh process measured, where it disagrees with the run: then that figure counts."""
        return self.confirmed if self.confirmed is not None and not self.confirmed.agrees else None

    @property
    def fell(self) -> bool:
        """Whether a fresh process measured the size to be slower, beyond doubt."""
        fresh = self.counts_instead
        return fresh is not None and self.throughput is not None and fresh.throughput < self.throughput


class Warning(Event, frozen=True, tag="warning", kw_only=True):  # noqa: A001 - the event's name in the stream
    kind: str
    text: str
    remedy: str = ""
    numbers: dict[str, float] = {}


class LimitVerdict(msgspec.Struct, frozen=True):
    """One size against the latency limit. `more_calls` is set when the calls do not suffice to say."""

    batch_size: int
    verdict: Literal["pass", "fail", "unknown"]
    more_calls: int | None = None
    calls: int = 0
    over: int = 0
    """Calls that took longer than the limit."""
    fresh: bool = False
    """Whether the calls are those of a fresh process that ran nothing but this size."""


class Limit(msgspec.Struct, frozen=True):
    ms: float
    percentile: int
    best: int | None
    """The passing size with the highest throughput."""
    verdicts: tuple[LimitVerdict, ...] = ()
    text: str = ""


class Cost(msgspec.Struct, frozen=True):
    """Time per call = fixed + per item * batch size, where it holds."""

    fixed_ms: float
    per_item_ms: float
    leaves_line_at: int | None
    fixed_low_ms: float | None = None
    fixed_high_ms: float | None = None
    per_item_low_ms: float | None = None
    per_item_high_ms: float | None = None
    fitted_on: tuple[int, ...] = ()
    text: str = ""


class Suggestion(msgspec.Struct, frozen=True):
    batch_size: int
    reason: str


class Diagnosis(msgspec.Struct, frozen=True):
    """Why the curve bends: what the counters show, what to try, and the command that tries it."""

    kind: str
    text: str
    remedy: str = ""
    command: str = ""
    numbers: dict[str, float] = {}


class Verdict(Event, frozen=True, tag="verdict", kw_only=True):
    peak: int | None
    ties: tuple[int, ...]
    knee: int | None
    kind: PeakKind
    limit: Limit | None
    cost: Cost | None
    certain: bool = False
    """Whether the measurements can tell the peak from every size that is not among the ties."""
    advice: str = ""
    recommended: int | None = None
    suggestions: tuple[Suggestion, ...] = ()
    diagnosis: Diagnosis | None = None


class RaceProgress(Event, frozen=True, tag="race-progress", kw_only=True):
    lane: int
    done: int
    total: int
    round: int = 0


class Lane(msgspec.Struct, frozen=True):
    """One lane of the race; times are of the typical (median) round."""

    name: str
    calls: int
    batch_size: int
    total_ms: float
    ms_per_item: float
    first_answer_ms: float
    call_ms: tuple[float, ...] = ()
    """Wall time of each call of the median round: what the replay plays."""


class RaceFinished(Event, frozen=True, tag="race-finished", kw_only=True):
    lanes: tuple[Lane, Lane]
    speedup: float
    speedup_low: float | None
    speedup_high: float | None
    outputs_agree: bool | None
    rounds: int = 0
    agreement: str = ""
    chunked: bool = False


class SizePrepared(Event, frozen=True, tag="prepared", kw_only=True):
    """A size was made ready; raw, so that `show` can derive everything again."""

    prepared: Prepared


class BlockMeasured(Event, frozen=True, tag="block", kw_only=True):
    """One block of raw call times; `confirming` when a fresh process measured it to confirm a verdict."""

    block: Block
    confirming: bool = False


class SizeFailed(Event, frozen=True, tag="failure", kw_only=True):
    batch_size: int
    failure: Failure


class Status(Event, frozen=True, tag="status", kw_only=True):
    """What is being done now, in a word and a sentence; for people, nothing is derived from it."""

    phase: Literal["starting", "loading", "warming", "measuring", "paused", "confirming", "cancelling"]
    text: str = ""
    batch_size: int | None = None


class RunFinished(Event, frozen=True, tag="run-finished", kw_only=True):
    reason: Reason
    elapsed_s: float
    error: ErrorText | None = None
    remedy: str = ""
    usage: bool = False
    """Whether an argument has to change before it can work (exit code 2)."""


AnyEvent = (
    RunStarted
    | ModelReady
    | Point
    | Warning
    | Verdict
    | RaceProgress
    | RaceFinished
    | SizePrepared
    | BlockMeasured
    | SizeFailed
    | Status
    | RunFinished
)

_KNOWN = frozenset(str(kind.__struct_config__.tag) for kind in get_args(AnyEvent))
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class _Head(msgspec.Struct):
    event: str
    schema: int | None = None


_head_decoder = msgspec.json.Decoder(_Head)


def encode(event: AnyEvent) -> bytes:
    """The event as one line of JSON with its newline. Raises ValueError when a number in it is not finite."""
    _refuse_non_finite(msgspec.to_builtins(event), event.__struct_config__.tag)
    return _encoder.encode(event) + b"\n"


def decode(line: bytes | str) -> AnyEvent | None:
    """The event on a line; None for an event of a kind that this version does not know.

    Strict about types, tolerant of unknown fields. Raises StoreError for a newer schema or a line that is no event.
    """
    try:
        head = _head_decoder.decode(line)
        if head.schema is not None and head.schema > SCHEMA:
            raise StoreError(
                f"it is written in schema {head.schema}; this version reads up to {SCHEMA}.",
                title="the run file is newer than this program",
                remedy="Update batchpeak to read it.",
            )
        event = _decoder.decode(line) if head.event in _KNOWN else None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"a line cannot be read: {error}.", title="not a run file") from error
    if event is not None and (wrong := _impossible(event)):
        raise StoreError(f"a line holds {wrong}.", title="not a run file")
    return event


def decode_lines(lines: Iterable[bytes]) -> Iterator[AnyEvent]:
    """The events of a stream or file. A last line without its newline was torn by a crash and is left out."""
    for line in lines:
        if not line.endswith(b"\n"):
            return
        if line.strip():
            event = decode(line)
            if event is not None:
                yield event


def _impossible(event: AnyEvent) -> str:
    """What no run writes and no formula takes, in words; "" when the event is possible."""
    match event:
        case BlockMeasured(block=block):
            if block.batch_size < 1 or block.calls < 0 or block.items < 0 or block.group < 1:
                return "a block with impossible counts"
            if block.seconds <= 0.0 or any(time <= 0.0 for time in block.call_ms):
                return "a block that took no time"
        case RunStarted(plan=plan):
            if any(size < 1 for size in plan.batch_sizes) or min(plan.images, plan.lane_batch_size) < 1:
                return "a batch size below 1"
            if min(plan.budget_s, plan.size_budget_s, plan.precision) <= 0.0:
                return "a plan without time or precision"
        case Point(batch_size=size) if size < 1:
            return "a batch size below 1"
    return ""


def _refuse_non_finite(value: object, where: object) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a number of the event {where!r} is not finite")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _refuse_non_finite(inner, f"{where}.{name}")
    elif isinstance(value, (list, tuple)) and not _all_finite(value):
        for inner in value:
            _refuse_non_finite(inner, where)


def _all_finite(values: Sequence[Any]) -> bool:
    """Whether these are finite numbers and nothing else: the usual case, a block's hundreds of call times, at once."""
    try:
        return all(map(math.isfinite, values))
    except TypeError:
        return False
