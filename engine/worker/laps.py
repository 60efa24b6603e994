"""One lap of a race: the same images through calls of one size, timed one by one, with progress between the calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from engine import wire
from engine.models.source import take
from engine.worker.inbox import StopFlag
from engine.worker.loop import SECOND, Clock, Step, quiet_collector, warm_up
from engine.worker.outputs import first_tensor, for_keeping

PROGRESS_NS = SECOND // 4


@dataclass(slots=True)
class Lane:
    """A lane's calls, in order, and what they returned in its last lap."""

    steps: list[Step]
    sizes: list[int]
    warm: bool = False
    outputs: list[torch.Tensor | None] | None = None


def lane_of(inputs: Any, images: int, batch_size: int, step: Callable[[Any], Step]) -> Lane:
    """The calls of `batch_size` that take all images in their order; the last takes what is left. Views, made before the timing."""
    starts = range(0, images, batch_size)
    sizes = [min(batch_size, images - start) for start in starts]
    return Lane(
        [step(take(inputs, start, start + size)) for start, size in zip(starts, sizes, strict=True)], sizes
    )


def run_lap(
    lane: Lane,
    command: wire.Lap,
    clock: Clock,
    stop: StopFlag,
    send: Callable[[wire.RaceStep], object],
    *,
    copy_outputs: bool,
) -> wire.LapDone:
    """Run the lane once. Raises StopRequested between calls when the flag goes up.

    `total_ms` runs from the first call's start to the last one's end; what was spent between calls on sending progress and on
    `copy_outputs` (devices may reuse an output's memory in the next call) is taken out of it.
    """
    lane.outputs = None
    send(wire.RaceStep(command.lane, 0, command.images))
    sent = clock()
    if not lane.warm:
        warm_up(lane.steps[0], clock, stop)
        lane.warm = True
    # Once more at every lap: the other lane ran meanwhile, with another size.
    lane.steps[0]()
    if lane.sizes[-1] != lane.sizes[0]:
        lane.steps[-1]()
    keep = for_keeping if copy_outputs else first_tensor
    call_ns = [0] * len(lane.steps)
    outputs: list[torch.Tensor | None] = [None] * len(lane.steps)
    done, left_out = 0, 0
    with quiet_collector():
        begin = end = clock()
        for index, step in enumerate(lane.steps):
            before = clock()
            output = step()
            end = clock()
            call_ns[index] = end - before
            done += lane.sizes[index]
            if stop.up:
                break
            outputs[index] = keep(output)
            # Both lanes let go of what they do not keep before the next call.
            del output
            if end - sent >= PROGRESS_NS and done < command.images:
                send(wire.RaceStep(command.lane, done, command.images))
                sent = end
                left_out += clock() - end
            elif copy_outputs and done < command.images:
                left_out += clock() - end
    stop.check()
    lane.outputs = outputs
    return wire.LapDone(
        lane=command.lane,
        round=command.round,
        batch_size=command.batch_size,
        total_ms=max(end - begin - left_out, 1) / 1e6,
        call_ms=tuple(max(time, 1) / 1e6 for time in call_ns),
    )
