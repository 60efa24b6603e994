"""A run as its events tell it: what `show`, `resume`, exports and the interface read. Built by adding events in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from engine import events
from engine.results import Measurement


@dataclass(slots=True)
class RunRecord:
    """Accumulates one run. Events of other runs are refused by `add` (returns False) and change nothing."""

    started: events.RunStarted | None = None
    model: events.ModelReady | None = None
    points: dict[int, events.Point] = field(default_factory=dict)
    measurements: dict[int, Measurement] = field(default_factory=dict)
    warnings: list[events.Warning] = field(default_factory=list)
    verdict: events.Verdict | None = None
    status: events.Status | None = None
    progress: dict[int, events.RaceProgress] = field(default_factory=dict)
    race: events.RaceFinished | None = None
    finished: events.RunFinished | None = None

    @classmethod
    def of(cls, stream: Iterable[events.AnyEvent]) -> RunRecord:
        """The record of all events of a stream."""
        record = cls()
        for event in stream:
            record.add(event)
        return record

    @property
    def id(self) -> str | None:
        return self.started.run if self.started else None

    def add(self, event: events.AnyEvent) -> bool:
        """Take one event in; False when it belongs to another run or comes before any start."""
        if isinstance(event, events.RunStarted):
            if self.started is not None:
                return False
            self.started = event
            return True
        if self.started is None or event.run != self.started.run:
            return False
        match event:
            case events.ModelReady():
                self.model = event
            case events.Point():
                self.points[event.batch_size] = event
                self._change(event.batch_size, state=event.state, kept_from=event.kept_from)
            case events.SizePrepared():
                self._change(event.prepared.batch_size, prepared=event.prepared)
            case events.BlockMeasured():
                self._add_block(event)
            case events.SizeFailed():
                self._change(event.batch_size, failure=event.failure)
            case events.Warning():
                self.warnings.append(event)
            case events.Verdict():
                self.verdict = event
            case events.RaceProgress():
                self.progress[event.lane] = event
            case events.RaceFinished():
                self.race = event
            case events.Status():
                self.status = event
            case events.RunFinished():
                self.finished = event
        return True

    def _change(self, batch_size: int, **fields: object) -> None:
        known = self.measurements.get(batch_size, Measurement(batch_size))
        self.measurements[batch_size] = msgspec.structs.replace(known, **fields)

    def _add_block(self, event: events.BlockMeasured) -> None:
        known = self.measurements.get(event.block.batch_size, Measurement(event.block.batch_size))
        if event.confirming:
            self._change(known.batch_size, confirmed=(*known.confirmed, event.block))
        else:
            self._change(known.batch_size, blocks=(*known.blocks, event.block))
