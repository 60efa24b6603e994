"""The verdict on a set of measurements, recomputed at will and never by measuring: what `sweep`, `peak` and `show` tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from engine import events
from engine.advice import advise
from engine.costmodel import CostModel, call_times, fit_cost
from engine.diagnosis import diagnose
from engine.limits import judge_limit
from engine.plan import Plan
from engine.results import Measurement
from engine.standing import Standing, stand
from engine.stats import MIN_BLOCKS
from engine.suggest import suggestions

MOST_CONFIRMED = 6
"""Sizes that are measured once more at the most: each takes a process of its own, and seconds."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict without a run's clock; `event` adds that."""

    peak: int | None
    ties: tuple[int, ...]
    knee: int | None
    kind: events.PeakKind
    certain: bool
    limit: events.Limit | None
    cost: events.Cost | None
    recommended: int | None
    """What to deploy: the best passing size under a limit, else the knee, which is the peak when no smaller size surely does."""
    advice: str
    suggestions: tuple[events.Suggestion, ...]
    diagnosis: events.Diagnosis | None
    to_confirm: tuple[int, ...]
    """Sizes that the verdict rests on and that no fresh process has measured yet."""
    model: CostModel | None
    standing: Standing

    def event(self, *, run: str, t: float) -> events.Verdict:
        """The verdict as it is told, stored and shown."""
        return events.Verdict(
            run=run,
            t=t,
            peak=self.peak,
            ties=self.ties,
            knee=self.knee,
            kind=self.kind,
            limit=self.limit,
            cost=self.cost,
            certain=self.certain,
            advice=self.advice,
            recommended=self.recommended,
            suggestions=self.suggestions,
            diagnosis=self.diagnosis,
        )


def judge(
    measurements: Iterable[Measurement],
    *,
    limit_ms: float | None = None,
    percentile: int | None = None,
    plan: Plan | None = None,
    host: Mapping[str, Any] | None = None,
    unit: str = "images/s",
) -> Judgement:
    """Everything that the measurements allow to say, at any time in a run or after it.

    The limit is the plan's unless one is given here. `unit` is the throughput's.
    """
    known = sorted(measurements, key=lambda one: one.batch_size)
    plan = plan or Plan(batch_sizes=tuple(one.batch_size for one in known) or (1,))
    limit_ms = plan.limit_ms if limit_ms is None else limit_ms
    percentile = plan.percentile if percentile is None else percentile
    plan = msgspec.structs.replace(plan, limit_ms=limit_ms, percentile=percentile)
    if plan.kind == "peak":
        # A search has no list; a command that repeats it needs one.
        sizes = tuple(one.batch_size for one in known if one.blocks)
        plan = msgspec.structs.replace(plan, batch_sizes=sizes or plan.batch_sizes)
    standing = stand(known)
    limit = (
        judge_limit(known, standing, limit_ms=limit_ms, percentile=percentile)
        if limit_ms is not None
        else None
    )
    model = _cost(standing)
    peak, counting = standing.peak, standing.counting
    # Of a peak on too few blocks nothing is explained.
    enough = peak is not None and counting is not None and counting.blocks(peak) >= MIN_BLOCKS
    diagnosis = diagnose(known, standing, model, plan=plan, host=host or {}) if enough else None
    item = unit.partition("/")[0].removesuffix("s") or "item"
    recommended = _recommended(standing, limit)
    return Judgement(
        peak=standing.peak,
        ties=standing.ties,
        knee=standing.knee,
        kind=_kind(standing, limit),
        certain=standing.certain,
        limit=limit,
        cost=_cost_event(model, standing, diagnosis, item) if model is not None else None,
        recommended=recommended,
        advice=advise(known, standing, limit, recommended, unit=unit),
        suggestions=suggestions(known, standing, limit),
        diagnosis=diagnosis,
        to_confirm=_to_confirm(known, standing, recommended),
        model=model,
        standing=standing,
    )


def _recommended(standing: Standing, limit: events.Limit | None) -> int | None:
    if limit is not None:
        return limit.best
    return standing.knee


def _kind(standing: Standing, limit: events.Limit | None) -> events.PeakKind:
    """ "limit" when the limit keeps the peak itself from being deployed."""
    if limit is None or standing.peak is None:
        return standing.kind
    says = {verdict.batch_size: verdict.verdict for verdict in limit.verdicts}
    return "limit" if says.get(standing.peak) == "fail" else standing.kind


def _cost(standing: Standing) -> CostModel | None:
    """The cost model of the figures that count; None when none of the sizes on its line has blocks enough.

    Its line is one process's: once a size has fallen, the run's up to there; what fell, and what else was confirmed, is held
    against it, and what the run alone says of larger sizes is left out.
    """
    counting = standing.counting
    if counting is None:
        return None
    fell = min(standing.fallen, default=math.inf)
    counted = [
        time
        for time in call_times(counting)
        if time.batch_size < fell or time.batch_size not in standing.unproven
    ]
    model = fit_cost(counted, below=fell)
    settled = model is not None and max(map(counting.blocks, model.line.sizes)) >= MIN_BLOCKS
    return model if settled else None


def _cost_event(
    model: CostModel, standing: Standing, diagnosis: events.Diagnosis | None, item: str
) -> events.Cost:
    reasons = {"page-faults": "page faults", "working-set": "beyond the cache", "other-load": "other load"}
    because = reasons.get(diagnosis.kind, "") if diagnosis is not None else ""
    alone = model.leaves_line_at in standing.unconfirmed
    return model.event(item=item, because=because, where="in a fresh process" if alone else "")


def _to_confirm(known: Iterable[Measurement], standing: Standing, recommended: int | None) -> tuple[int, ...]:
    confirmed = {one.batch_size for one in known if one.confirmed}
    wanted = dict.fromkeys((recommended, standing.peak, standing.knee))
    missing = tuple(size for size in wanted if size is not None and size not in confirmed)
    if missing or len(confirmed) >= MOST_CONFIRMED:
        return missing
    challenger = _challenger(standing)
    return () if challenger is None else (challenger,)


def _challenger(standing: Standing) -> int | None:
    """After a size has fallen in its confirmation: the one whose confirmation tells most; None when nothing is open.

    What makes a fresh process slower (memory taken anew at every call) begins at some size, so the largest that holds is
    looked for by halving, between the largest known to hold and the smallest known to fall.
    """
    if not standing.undecided:
        return None
    falls = min(standing.fallen)
    held = standing.confirmed.sizes if standing.confirmed is not None else ()
    holds = max((size for size in held if size < falls), default=0)
    between = [size for size in standing.undecided if holds < size < falls]
    if between:
        return between[len(between) // 2]
    below = [size for size in standing.undecided if size < holds]
    if below or not holds:
        return standing.best_of(below or standing.undecided)
    return None
