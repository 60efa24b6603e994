"""What was measured: blocks of raw call times per batch size, kept whole; figures are derived, never stored instead."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["measuring", "stable", "noisy", "short", "oom", "error", "skipped", "cancelled"]

MEASURED: frozenset[State] = frozenset({"measuring", "stable", "noisy", "short", "cancelled"})
"""The states in which a size may have figures."""


class Block(msgspec.Struct, frozen=True):
    """Back-to-back calls at one batch size, timed together and one by one. The first call after a change of size is not in it."""

    batch_size: int
    calls: int
    seconds: float
    """Wall time of the timed calls together, above 0."""
    call_ms: tuple[float, ...]
    """Wall time of each call, ms; when `group` > 1: the mean call of each group of that many calls."""
    items: int
    """Items (images) that the model really processed in the timed calls."""
    group: int = 1
    """Calls timed as one, so that reading the clock costs under 1 % of what it times."""
    faults: int | None = None
    """Minor page faults during the timed calls; None where the system does not count them."""
    other_load: float | None = None
    """Other load on the machine during the block, in busy cores; None where it is not known."""
    slowed_by: tuple[str, ...] = ()
    """What kept the device below its clock right after the block, in its driver's words."""
    round: int = 0
    worker: int = 0
    """Counts the measuring processes of the run; blocks of one process share its history."""

    @property
    def throughput(self) -> float:
        """Items per second over the block."""
        return self.items / self.seconds


class Prepared(msgspec.Struct, frozen=True):
    """A size made ready: inputs made, cold call timed, warmed up, calibrated."""

    batch_size: int
    cold_ms: float
    calls_per_block: int
    warmup_calls: int = 0
    warmup_s: float = 0.0
    group: int = 1
    memory_mb: float | None = None
    effective_batch_size: int | None = None
    """Read from the output's first dimension; None when the output has none."""
    finite: bool = True
    all_zero: bool = False
    compiled: bool | None = None
    """None: not asked for; False: asked for, fell back to eager."""
    worker: int = 0


class Failure(msgspec.Struct, frozen=True):
    """Why a size has no (further) figures."""

    kind: Literal["oom", "error", "killed", "forecast", "time"]
    title: str
    message: str
    where: str = ""
    """File and line in the user's code, when it raised there."""
    of_size: bool = False
    """The error is known to be this batch size's, as of a model that takes one size only: others may well be measured."""


class Measurement(msgspec.Struct, frozen=True):
    """Everything known of one batch size in one run."""

    batch_size: int
    state: State = "measuring"
    prepared: Prepared | None = None
    blocks: tuple[Block, ...] = ()
    confirmed: tuple[Block, ...] = ()
    """Blocks of a fresh process that ran nothing but this size."""
    failure: Failure | None = None
    kept_from: str | None = None
    """Id of the run that the blocks were taken over from."""

    @property
    def calls(self) -> int:
        return sum(block.calls for block in self.blocks)

    @property
    def seconds(self) -> float:
        return sum(block.seconds for block in self.blocks)

    @property
    def deployable(self) -> bool:
        """Whether the size may be a peak: measured, and the model processed what it was given."""
        prepared = self.prepared
        if not self.blocks or self.state in ("oom", "error", "skipped"):
            return False
        return prepared is None or (
            prepared.effective_batch_size in (None, self.batch_size)
            and prepared.finite
            and not prepared.all_zero
        )
