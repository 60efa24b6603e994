"""What to measure: the frozen plan, and the parsing and checking of what a person types."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

import msgspec

from engine.errors import UsageError

Kind = Literal["sweep", "peak", "race"]
Dtype = Literal["float32", "bfloat16", "float16"]

BUILT_IN_MODEL = "fashion-cnn"
DEFAULT_BATCH_SIZES = (1, 8, 32, 128, 512)
MAX_BATCH_SIZE = 2**31 - 1
"""Larger counts do not fit the 32-bit sizes that many kernels index with."""
MAX_LIST_LENGTH = 4096
"""A list longer than this is a typing mistake: at the shortest it would measure for twenty minutes."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=False, omit_defaults=False):
    """One run as asked for. Everything that changes a figure is in here, and so in the run file."""

    kind: Kind = "sweep"
    model: str = BUILT_IN_MODEL
    batch_sizes: tuple[int, ...] = DEFAULT_BATCH_SIZES
    device: str = "cpu"
    threads: int | None = None
    """None: as many as this process may use (affinity and container quota); the worker reports what it set."""
    inter_op_threads: int | None = None
    dtype: Dtype = "float32"
    autocast: bool = False
    channels_last: bool = False
    compile: str | None = None
    """None: eager; else a mode of torch.compile ("default", "reduce-overhead", "max-autotune")."""
    allocator: str = "system"
    """"system", "keep" (freed memory is kept, see `host.allocator_environment`), or the path of a library to preload."""
    fresh: bool = False
    """Every size in a measuring process of its own."""
    transfer: bool = False
    """The copy of the inputs to the device is inside the timing."""
    input: str | None = None
    image_dir: str | None = None
    model_args: dict[str, str] = {}
    weights: str | None = None
    trust: bool = False
    """A pickled file may run code when it is loaded: only with this."""
    precision: float = 0.02
    """Half width of the throughput's 95 % interval, relative, at which a size is stable."""
    budget_s: float = 60.0
    """Ceiling for the timed part of the run, seconds."""
    size_budget_s: float = 10.0
    """Ceiling for one size, seconds."""
    seed: int = 0
    limit_ms: float | None = None
    percentile: int = 99
    max_batch_size: int = 4096
    """The largest size that a peak search tries."""
    force: bool = False
    """Also try sizes that are forecast not to fit in memory."""
    confirm: bool = True
    """Measure what a verdict recommends once more in a fresh process."""
    images: int = 256
    """Race: images per lane."""
    lane_batch_size: int = 1
    """Race: images per call of the first lane."""
    chunked: bool = False
    """Race: when all images do not fit in one call, race the largest size that fits, in chunks."""
    min_rounds: int = 2


@dataclass(frozen=True, slots=True)
class BatchList:
    """A parsed batch list: `sizes` unique and ascending; `note` says what was merged or reordered, "" if nothing was."""

    sizes: tuple[int, ...]
    note: str


_RANGE = re.compile(r"^(?P<first>\d+)\.\.(?P<last>\d+)(?:/(?P<step>\d+))?$", re.ASCII)
_WHOLE = re.compile(r"^\d+$", re.ASCII)


def parse_batch_sizes(text: str, *, argument: str = "--batch-sizes") -> BatchList:
    """Parse "1,8,32", "1..1024" (doubling), "64..256/32" (step), or a mix of them, separated by commas.

    Empty items are skipped. Raises UsageError that names the first bad token and its place (counted from 1).
    """
    sizes: list[int] = []
    empty = 0
    for place, raw in enumerate(text.split(","), start=1):
        token = raw.strip()
        if not token:
            empty += 1
            continue
        sizes.extend(_sizes_of(token, place, argument))
        if len(sizes) > MAX_LIST_LENGTH:
            raise UsageError(
                f"the list has more than {MAX_LIST_LENGTH:,} sizes (reached at item {place}, {_shown(token)}).",
                argument=argument,
                remedy="Give fewer sizes, or a range that doubles: 1..1024.",
            )
    if not sizes:
        raise UsageError(
            "no batch size in it.", argument=argument, remedy="Expected for example 1,8,32,128,512."
        )
    unique = tuple(sorted(set(sizes)))
    notes = []
    if len(unique) != len(sizes):
        repeated = sorted({size for size in sizes if sizes.count(size) > 1}) if len(sizes) < 200 else []
        which = ": " + ", ".join(map(str, repeated)) if repeated else ""
        notes.append(f"repeated sizes merged{which}")
    if sorted(sizes) != sizes:
        notes.append("put in ascending order")
    if empty:
        notes.append("empty items skipped")
    return BatchList(unique, "; ".join(notes))


def format_batch_sizes(sizes: tuple[int, ...]) -> str:
    """The list as a person would type it: "1,8,32"."""
    return ",".join(map(str, sizes))


def _sizes_of(token: str, place: int, argument: str) -> list[int]:
    if _WHOLE.match(token):
        return [_size(token, token, place, argument)]
    found = _RANGE.match(token)
    if not found:
        raise UsageError(
            f"item {place} is {_shown(token)}; expected a whole number from 1, or a range like 1..1024 or 64..256/32.",
            argument=argument,
        )
    first = _size(found["first"], token, place, argument)
    last = _size(found["last"], token, place, argument)
    if last < first:
        raise UsageError(
            f"item {place} is {_shown(token)}; the range ends before it begins.", argument=argument
        )
    if found["step"] is None:
        return [first << power for power in range((last // first).bit_length())]
    if len(found["step"]) > 10 or (step := int(found["step"])) < 1:
        raise UsageError(
            f"item {place} is {_shown(token)}; the step must be a whole number from 1 to {MAX_BATCH_SIZE:,}.",
            argument=argument,
        )
    if (last - first) // step >= MAX_LIST_LENGTH:
        raise UsageError(
            f"item {place} is {_shown(token)}; that is more than {MAX_LIST_LENGTH:,} sizes.",
            argument=argument,
        )
    return list(range(first, last + 1, step))


def _size(digits: str, token: str, place: int, argument: str) -> int:
    # int() of a very long digit string is refused by Python itself, with another message: look at the length first.
    if len(digits.lstrip("0")) > 10 or not 1 <= int(digits[-11:]) <= MAX_BATCH_SIZE:
        raise UsageError(
            f"item {place} is {_shown(token)}; a batch size is a whole number from 1 to {MAX_BATCH_SIZE:,}.",
            argument=argument,
        )
    return int(digits)


def _shown(token: str) -> str:
    clean = "".join(char if char.isprintable() else "?" for char in token)
    return f"'{clean if len(clean) <= 40 else clean[:39] + '…'}'"


_NUMBER = r"(?P<number>\d+(?:\.\d*)?|\.\d+)"
_DURATION = re.compile(rf"^{_NUMBER}\s*(?P<unit>us|µs|ms|s|m|min)?$", re.ASCII)
_TO_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "min": 60_000.0}


def parse_limit_ms(text: str, *, argument: str = "--limit") -> float:
    """A latency limit: "20ms", "0.02s", "500us", or a bare number of milliseconds. Returns ms, above 0."""
    return _duration_ms(text, argument, bare="ms", example="20ms or 0.02s")


def parse_seconds(text: str, *, argument: str = "--budget") -> float:
    """A span of time: "30s", "2m", "500ms", or a bare number of seconds. Returns seconds, above 0."""
    return _duration_ms(text, argument, bare="s", example="30s or 2m") / 1000.0


def _duration_ms(text: str, argument: str, *, bare: str, example: str) -> float:
    found = _DURATION.match(text.strip().replace("µ", "u"))
    value = float(found["number"]) * _TO_MS[found["unit"] or bare] if found else math.nan
    if not (0.0 < value <= 86_400_000.0):
        raise UsageError(
            f"{_shown(text)} is not a time above 0 and up to a day; expected for example {example}.",
            argument=argument,
        )
    return value


def parse_precision(text: str, *, argument: str = "--precision") -> float:
    """A relative half width: "2%" or "0.02". Returns a fraction from 0.001 to 0.5."""
    stripped = text.strip()
    found = re.match(rf"^{_NUMBER}\s*(?P<percent>%)?$", stripped, re.ASCII)
    value = float(found["number"]) / (100.0 if found["percent"] else 1.0) if found else math.nan
    if not (0.001 <= value <= 0.5):
        raise UsageError(
            f"{_shown(text)} is not a precision from 0.1% to 50%; expected for example 2% or 0.02.",
            argument=argument,
        )
    return value


def parse_percentile(text: str, *, argument: str = "--percentile") -> int:
    """A percentile that can be judged: a whole number from 50 to 99, "p99" too."""
    digits = text.strip().lower().removeprefix("p")
    if not re.match(r"^\d{2}$", digits, re.ASCII) or not 50 <= int(digits) <= 99:
        raise UsageError(
            f"{_shown(text)} is not a percentile; expected a whole number from 50 to 99, for example 99.",
            argument=argument,
        )
    return int(digits)


def parse_count(text: str, *, argument: str, most: int) -> int:
    """A whole number from 1 to `most`, e.g. threads or images."""
    stripped = text.strip()
    if not _WHOLE.match(stripped) or len(stripped) > 12 or not 1 <= int(stripped) <= most:
        raise UsageError(f"{_shown(text)} is not a whole number from 1 to {most:,}.", argument=argument)
    return int(stripped)
