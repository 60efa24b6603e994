"""Why the curve bends: what the counters show, what to do about it, and the command that tries it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from engine import events
from engine.advice import listed
from engine.costmodel import CostModel
from engine.plan import BUILT_IN_MODEL, Plan, format_batch_sizes
from engine.points import faults_per_call
from engine.results import Measurement
from engine.standing import Standing, counting_blocks
from engine.stats import CONFIDENCE, drift, throughput_estimate

DROP = math.log(0.97)
"""A larger size surely below this part of the peak makes a bend worth explaining."""
FAULT_MS = 0.001
"""Price of a minor page fault, ms: the kernel clears the page, and the caches start cold. Measured: 1.7 to 2.2 us."""
FAULT_PART = 0.15
"""The faults' price must be at least this part of the time lost, or they are not what bends the curve."""
FAULTS_JUMP = 2.0
"""Faults per item must be this many times those at the peak."""
OTHER_LOAD = 0.25
"""Cores kept busy by others, above which they count."""
DRIFT = 0.05


def diagnose(
    measurements: Iterable[Measurement],
    standing: Standing,
    model: CostModel | None,
    *,
    plan: Plan,
    host: Mapping[str, Any],
) -> events.Diagnosis | None:
    """The likeliest reason that larger sizes are slower than the peak; None when the curve does not bend.

    `host` holds the facts of `host.host_facts`. Reasons that the counters show come first; the model's own working set is
    what is left when they show nothing.
    """
    by_size = {one.batch_size: one for one in measurements if one.deployable}
    if standing.peak is None:
        return None
    bent = _bent_sizes(standing, model)
    if standing.fallen and (found := _kept_by_history(by_size, standing, plan, host)):
        return found
    if not bent:
        return _history(standing, plan) if standing.fallen else None
    found = (
        _page_faults(by_size, standing, model, bent, plan, host)
        or _threads(bent, plan, host)
        or _other_load(by_size, bent, standing.peak)
    )
    if found is None and bent[0] in standing.fallen:
        # Among the other sizes it was fast: neither the run's drift nor its working set slows it alone.
        return _history(standing, plan)
    return found or _drift(by_size, bent, standing) or _working_set(bent, plan, standing)


def _bent_sizes(standing: Standing, model: CostModel | None) -> tuple[int, ...]:
    """Sizes above the peak that are surely slower, and those that surely left the line of the cost model."""
    counting, peak = standing.counting, standing.peak
    if counting is None or peak is None:
        return ()
    larger = [size for size in counting.sizes if size > peak]
    alpha = (1.0 - CONFIDENCE) / max(1, len(larger))
    slower = {
        size for size in larger if (standing.beside(size, peak) or counting).highest(size, peak, alpha) < DROP
    }
    leaves = model.leaves_line_at if model is not None else None
    if leaves is not None:
        slower.update(size for size in counting.sizes if size >= leaves)
    return tuple(sorted(slower))


def _bend(size: int, standing: Standing) -> str:
    """The bend in words: where a call costs more than the line, the throughput may rise all the same."""
    ratio = standing.ratio(size)
    drops = standing.peak is not None and size > standing.peak and ratio is not None and ratio < 1.0
    return f"the {'drop' if drops else 'extra cost'} from {size} on"


def _kept_by_history(
    by_size: Mapping[int, Measurement], standing: Standing, plan: Plan, host: Mapping[str, Any]
) -> events.Diagnosis | None:
    """Page faults that a size has alone and had not among the others, whose memory the run's process had kept."""
    if not plan.device.startswith("cpu"):
        return None
    for size in standing.fallen:
        one = by_size[size]
        alone, among = faults_per_call(one.confirmed), faults_per_call(one.blocks)
        fresh, before = throughput_estimate(one.confirmed), throughput_estimate(one.blocks)
        if alone is None or among is None or not fresh or not before:
            continue
        lost_ms = size / fresh * 1000.0 - size / before * 1000.0
        if alone < 100.0 or alone / size < FAULTS_JUMP * among / size + 1.0:
            continue
        if lost_ms <= 0.0 or (alone - among) * FAULT_MS < FAULT_PART * lost_ms:
            continue
        text = (
            f"in a fresh process {size} has {alone:,.0f} page faults a call, {among:,.0f} among the other sizes: "
            "alone, memory is given back to the system after a call and taken anew; "
            "what the run had allocated before kept it"
        )
        return _fault_remedy(
            text,
            plan,
            host,
            numbers={
                "batch_size": float(size),
                "faults_per_call": alone,
                "usual_faults_per_call": among,
                "lost_ms_per_call": lost_ms,
            },
        )
    return None


def _history(standing: Standing, plan: Plan) -> events.Diagnosis:
    """Sizes that fell, and no counter tells why."""
    fell = standing.fallen
    return events.Diagnosis(
        kind="process-history",
        text=(
            f"{listed(fell)} {'is' if len(fell) == 1 else 'are'} slower in a fresh process than among the other sizes, "
            "and no counter explains it: what a process did before changes what it does next"
        ),
        remedy="Measure every size in a fresh process.",
        command=sweep_command(plan, fresh=True),
        numbers={"batch_size": float(fell[0])},
    )


def _page_faults(
    by_size: Mapping[int, Measurement],
    standing: Standing,
    model: CostModel | None,
    bent: Sequence[int],
    plan: Plan,
    host: Mapping[str, Any],
) -> events.Diagnosis | None:
    counting = standing.counting
    if not plan.device.startswith("cpu") or counting is None or standing.peak is None:
        return None
    faults = {size: faults_per_call(counting_blocks(one)) for size, one in by_size.items()}
    before = [
        size
        for size in by_size
        if size < bent[0] and faults[size] is not None and size not in standing.unproven
    ]
    if not before:
        return None
    # The best of the sizes before the bend, since the search may hold sizes that the bend has reached already.
    reference = counting.leader_of(before)
    usual = (faults[reference] or 0.0) / reference
    for size in bent:
        count = faults.get(size)
        if count is None or count < 100.0 or count / size < FAULTS_JUMP * usual + 1.0:
            continue
        call_ms = size / counting.throughput(size) * 1000.0
        unbent_ms = size / counting.throughput(reference) * 1000.0
        if model is not None and model.leaves_line_at is not None and model.leaves_line_at <= size:
            unbent_ms = min(unbent_ms, model.line.ms(size))
        lost_ms = call_ms - unbent_ms
        if lost_ms <= 0.0 or count * FAULT_MS < FAULT_PART * lost_ms:
            continue
        where = " in a fresh process" if size in standing.unconfirmed else ""
        usual_count = faults[reference] or 0.0
        return _fault_remedy(
            f"{_bend(size, standing)} goes with {count:,.0f} page faults a call{where} "
            f"({usual_count:,.0f} at {reference}): memory is given back to the system after a call and taken anew",
            plan,
            host,
            numbers={
                "batch_size": float(size),
                "faults_per_call": count,
                "usual_faults_per_call": usual_count,
                "lost_ms_per_call": lost_ms,
            },
        )
    return None


def _fault_remedy(
    text: str, plan: Plan, host: Mapping[str, Any], *, numbers: dict[str, float]
) -> events.Diagnosis:
    remedy = command = ""
    # glibc's settings are Linux's; and where memory is kept already, the advice would send the person in a circle.
    if plan.allocator != "keep" and str(host.get("os", "Linux")).startswith("Linux"):
        text += "; `--allocator keep` tries without"
        remedy = (
            "Measure with freed memory kept; if that helps, start the service with the same two variables."
        )
        command = sweep_command(plan, allocator="keep")
    return events.Diagnosis(kind="page-faults", text=text, remedy=remedy, command=command, numbers=numbers)


def _threads(bent: Sequence[int], plan: Plan, host: Mapping[str, Any]) -> events.Diagnosis | None:
    cores = host.get("usable_cores")
    if not isinstance(cores, int) or plan.threads is None or plan.threads <= cores:
        return None
    return events.Diagnosis(
        kind="threads",
        text=f"{plan.threads} threads share {cores} usable cores; from {bent[0]} on they wait for each other",
        remedy=f"Measure with {cores} threads.",
        command=sweep_command(plan, threads=cores),
        numbers={"threads": float(plan.threads), "usable_cores": float(cores)},
    )


def _other_load(
    by_size: Mapping[int, Measurement], bent: Sequence[int], peak: int
) -> events.Diagnosis | None:
    """Other work on the machine, when there was clearly more of it beside the slower sizes than beside the peak."""
    beside_bent = _load([by_size[size] for size in bent if size in by_size])
    beside_peak = _load([by_size[peak]]) if peak in by_size else None
    if beside_bent is None or beside_bent < OTHER_LOAD or beside_bent < 2.0 * (beside_peak or 0.0):
        return None
    return events.Diagnosis(
        kind="other-load",
        text=f"other work kept {beside_bent:.1f} cores busy while {bent[0]} and larger sizes were measured",
        remedy="Measure again when the machine is quiet.",
        numbers={"other_load": beside_bent, "other_load_at_peak": beside_peak or 0.0},
    )


def _load(measurements: Sequence[Measurement]) -> float | None:
    loads = [
        block.other_load
        for one in measurements
        for block in counting_blocks(one)
        if block.other_load is not None
    ]
    return sum(loads) / len(loads) if loads else None


def _drift(
    by_size: Mapping[int, Measurement], bent: Sequence[int], standing: Standing
) -> events.Diagnosis | None:
    found = drift([one.blocks for one in by_size.values()])
    if found is None or not found.significant or found.total > -DRIFT:
        return None
    text = (
        f"throughput fell by {-found.total:.0%} over the run at all sizes (heat, or clocks); "
        f"{_bend(bent[0], standing)} may be part of it"
    )
    return events.Diagnosis(
        kind="drift",
        text=text.replace("%", " %"),
        remedy="Measure again once the machine's clocks have settled, with a larger budget.",
        numbers={"drift_total": found.total, "drift_per_second": found.per_second},
    )


def _working_set(bent: Sequence[int], plan: Plan, standing: Standing) -> events.Diagnosis:
    cpu = plan.device.startswith("cpu")
    where = "the processor's caches" if cpu else "the device"
    return events.Diagnosis(
        kind="working-set",
        text=f"no counter explains {_bend(bent[0], standing)}: the model's own working set outgrows {where}",
        remedy="Stay below it" + (", or try --channels-last." if cpu and not plan.channels_last else "."),
        numbers={"batch_size": float(bent[0])},
    )


_DEFAULT = Plan()
_VALUED = {
    "device": "--device",
    "threads": "--threads",
    "inter_op_threads": "--inter-op-threads",
    "dtype": "--dtype",
    "compile": "--compile",
    "input": "--input",
    "image_dir": "--image-dir",
    "weights": "--weights",
    "precision": "--precision",
    "budget_s": "--budget",
    "size_budget_s": "--size-budget",
    "seed": "--seed",
    "limit_ms": "--limit",
    "percentile": "--percentile",
}
_SWITCHES = {
    "autocast": "--autocast",
    "channels_last": "--channels-last",
    "fresh": "--fresh",
    "transfer": "--transfer",
    "trust": "--trust",
    "force": "--force",
}
_UNITS = {"budget_s": "s", "size_budget_s": "s", "limit_ms": "ms"}


def sweep_command(
    plan: Plan, *, allocator: str | None = None, threads: int | None = None, fresh: bool = False
) -> str:
    """The sweep of the plan with one thing changed, as typed in a shell; options at their defaults are left out."""
    changed = allocator if allocator is not None else plan.allocator
    words = ["batchpeak", "sweep"]
    if changed != _DEFAULT.allocator:
        words += ["--allocator", changed]
    if fresh:
        plan = msgspec.structs.replace(plan, fresh=True)
    if threads is not None:
        plan = msgspec.structs.replace(plan, threads=threads)
    for name, option in _VALUED.items():
        value = getattr(plan, name)
        if value is not None and value != getattr(_DEFAULT, name):
            words += [option, f"{value:g}{_UNITS.get(name, '')}" if isinstance(value, float) else str(value)]
    words += [option for name, option in _SWITCHES.items() if getattr(plan, name)]
    for key, argument in sorted(plan.model_args.items()):
        words += ["--model-arg", f"{key}={argument}"]
    if not plan.confirm:
        words.append("--no-confirm")
    words += ["--batch-sizes", format_batch_sizes(plan.batch_sizes)]
    if plan.model != BUILT_IN_MODEL:
        words.append(plan.model)
    return shlex.join(words)
