"""Doubts about figures, as values: each with its numbers, a sentence, and a remedy that knows what was tried already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine import stats
from engine.events import Warned
from engine.plan import Plan
from engine.results import MEASURED, Block, Measurement

OUTLIERS_MATTER = 0.01
"""Relative distance between the figure and items / wall time, or share of the wall time, from which outliers are told."""
LOAD_MATTERS = 0.5
"""Busy cores of others, on average, from which a figure is doubted."""
DRIFT_MATTERS = 0.01
TICKS_PER_READING = 100
"""A timed span shorter than this many ticks of the clock is off by over 1 %."""


def point_warnings(
    measurement: Measurement, *, precision: float = 0.02, timer_resolution_s: float = 1e-9
) -> tuple[Warned, ...]:
    """What to doubt about one size. `precision` is the run's; `timer_resolution_s` is that of the clock that timed the calls."""
    found = list(_about_outputs(measurement))
    blocks = measurement.blocks
    if blocks and measurement.state in MEASURED:
        load = other_load(blocks)
        found += filter(
            None,
            (
                _outliers(blocks, load),
                _load(load),
                _noisy(measurement, precision, load),
                _clock_groups(blocks),
                _coarse_timer(blocks, timer_resolution_s),
                _slowed(blocks),
            ),
        )
    return tuple(found)


def run_warnings(
    measurements: Sequence[Measurement], *, host: Mapping[str, Any], plan: Plan
) -> tuple[Warned, ...]:
    """What to doubt about a run as a whole. `host` holds the facts of `host.host_facts`; missing ones are not judged."""
    blocks = [block for measurement in measurements for block in measurement.blocks]
    load = other_load(blocks)
    found = (
        _threads(host, plan),
        _run_load(load, host, plan),
        _drift(measurements, load),
        _fell_back(measurements, plan),
    )
    return tuple(warned for warned in found if warned is not None)


def other_load(blocks: Iterable[Block]) -> float | None:
    """Busy cores of other programs while the blocks ran, weighted by their time; None when it was not counted."""
    counted = [(block.other_load, block.seconds) for block in blocks if block.other_load is not None]
    seconds = sum(weight for _, weight in counted)
    return sum(load * weight for load, weight in counted) / seconds if seconds > 0.0 else None


# --- one size ---------------------------------------------------------------------------------------------------


def _about_outputs(measurement: Measurement) -> Iterable[Warned]:
    prepared, size = measurement.prepared, measurement.batch_size
    if prepared is None:
        return
    effective = prepared.effective_batch_size
    if effective is None:
        yield Warned(
            "batch-size-unknown",
            f"the output holds no tensor with a batch, so the number of items processed is unknown; {size:,} are counted",
        )
    elif effective != size:
        yield Warned(
            "batch-size",
            f"the model was given {size:,} items and answered for {effective:,}; throughput counts {effective:,}",
            "The model's forward changes the batch; this size cannot be the peak.",
            {"batch_size": size, "effective_batch_size": effective},
        )
    if not prepared.finite:
        yield Warned(
            "not-finite",
            "the outputs hold NaN or infinite values",
            "Check weights, inputs and dtype (--dtype); arithmetic on NaN may run at another speed.",
        )
    if prepared.all_zero:
        yield Warned(
            "all-zero",
            "the outputs are all zero",
            "Check weights and inputs: work on zeros may be skipped by the kernels.",
        )


def _outliers(blocks: Sequence[Block], load: float | None) -> Warned | None:
    found = stats.outliers(blocks)
    figure, mean = stats.throughput_estimate(blocks), stats.mean_throughput(blocks)
    if found is None or figure is None or mean is None or not found.calls:
        return None
    apart = mean / figure - 1.0
    if abs(apart) < OUTLIERS_MATTER and found.time_share < OUTLIERS_MATTER:
        return None
    what = "calls" if blocks[0].group == 1 else "groups of calls"
    text = (
        f"{found.calls:,} of {found.of:,} {what} ({_percent(found.share, 2)}) took up to {found.largest_ms:.3g} ms, "
        f"the typical one {found.median_ms:.3g} ms; items / wall time over all is {_percent(abs(apart), 1)} "
        f"{'below' if apart < 0 else 'above'} the figure"
    )
    if load is not None and load >= LOAD_MATTERS:
        remedy = f"Other programs kept {load:.1f} cores busy meanwhile: stop them and measure again."
    elif load is not None:
        remedy = "No other load was counted, so the cause is in the process or the system: compare with one thread less."
    else:
        remedy = "Measure again on an idle machine; if they stay, they are the model's own."
    return Warned(
        "outliers",
        text,
        remedy,
        {
            "calls": found.calls,
            "of": found.of,
            "share": found.share,
            "time_share": found.time_share,
            "largest_ms": found.largest_ms,
            "median_ms": found.median_ms,
            "mean_to_figure": apart,
        },
    )


def _load(load: float | None) -> Warned | None:
    if load is None or load < LOAD_MATTERS:
        return None
    return Warned(
        "other-load",
        f"other programs kept {load:.1f} cores busy while this size was measured",
        "Stop them, or measure when the machine is idle.",
        {"busy_cores": load},
    )


def _noisy(measurement: Measurement, precision: float, load: float | None) -> Warned | None:
    interval = stats.throughput_interval(measurement.blocks)
    if measurement.state != "noisy" or interval is None:
        return None
    half, spent = interval.relative_half_width, measurement.seconds
    # the width falls with the square root of the time
    needed = spent * (half / precision) ** 2
    if load is not None and load >= LOAD_MATTERS:
        remedy = f"Other programs kept {load:.1f} cores busy: stop them first."
    elif needed <= 600.0:
        remedy = f"± {_percent(precision, 1)} would take about {needed - spent:.0f} s more at this noise: measure it longer."
    else:
        remedy = f"± {_percent(precision, 1)} is out of reach at this noise; a wider --precision ends sooner."
    return Warned(
        "noisy",
        f"± {_percent(half, 1)} after {spent:.1f} s of measuring",
        remedy,
        {"half_width": half, "seconds": spent, "seconds_needed": needed},
    )


def _clock_groups(blocks: Sequence[Block]) -> Warned | None:
    group = max(block.group for block in blocks)
    if group == 1:
        return None
    return Warned(
        "clock-groups",
        f"a call is so short that {group} are timed as one; the percentiles are those of means of {group} calls",
        "",
        {"group": group},
    )


def _coarse_timer(blocks: Sequence[Block], resolution_s: float) -> Warned | None:
    times = stats.call_times(blocks)
    if not len(times):
        return None
    shortest_s = stats.percentile(times, 50) * max(block.group for block in blocks) / 1000.0
    if shortest_s >= TICKS_PER_READING * resolution_s:
        return None
    return Warned(
        "timer",
        f"the clock ticks every {resolution_s * 1e6:.3g} µs and the typical timed span is {shortest_s * 1e6:.3g} µs: "
        f"single times are off by up to {_percent(resolution_s / shortest_s if shortest_s > 0.0 else 1.0, 0)}",
        "Trust the throughput, which is timed over whole blocks, more than the percentiles.",
        {"resolution_s": resolution_s, "span_s": shortest_s},
    )


def _slowed(blocks: Sequence[Block]) -> Warned | None:
    slowed = sum(1 for block in blocks if block.slowed_by)
    if not slowed:
        return None
    reasons = list(dict.fromkeys(reason for block in blocks for reason in block.slowed_by))
    return Warned(
        "throttled",
        f"the device ran below its clock after {slowed:,} of {len(blocks):,} blocks because of {', '.join(reasons)}",
        "That is its lasting speed under load if it stays so; else let it cool down and measure again.",
        {"blocks": slowed, "of": len(blocks)},
    )


# --- the run ----------------------------------------------------------------------------------------------------


def _threads(host: Mapping[str, Any], plan: Plan) -> Warned | None:
    usable, threads = host.get("usable_cores"), plan.threads
    if not isinstance(usable, int) or threads is None or threads <= usable:
        return None
    bounds = []
    if isinstance(affinity := host.get("cores_by_affinity"), int):
        bounds.append(f"affinity allows {affinity}")
    if isinstance(quota := host.get("cores_by_quota"), (int, float)):
        bounds.append(f"the container's quota is {quota:g}")
    why = f" ({', '.join(bounds)})" if bounds else ""
    return Warned(
        "threads",
        f"{threads} threads share {usable} usable core{'' if usable == 1 else 's'}{why}",
        f"Threads that wait for a core slow the others down: compare with --threads {usable}.",
        {"threads": threads, "usable_cores": usable},
    )


def _run_load(load: float | None, host: Mapping[str, Any], plan: Plan) -> Warned | None:
    if load is None or load < LOAD_MATTERS:
        return None
    usable = host.get("usable_cores")
    threads = plan.threads or usable
    of = f" of {usable}" if isinstance(usable, int) else ""
    numbers: dict[str, float] = {"busy_cores": load}
    if isinstance(usable, int) and isinstance(threads, int):
        numbers |= {"usable_cores": usable, "threads": threads}
        free = usable - threads
        if free >= load:
            left = f"{free} core is" if free == 1 else f"{free} cores are"
            remedy = (
                f"{left} left to them by --threads {threads}; shared caches and memory may still slow calls."
            )
        elif usable - load >= 1.0:
            remedy = f"Stop them, or leave them their cores: --threads {int(usable - load)}."
        else:
            remedy = "Stop them, or measure when the machine is idle."
    else:
        remedy = "Stop them, or measure when the machine is idle."
    return Warned(
        "other-load", f"other programs kept {load:.1f}{of} cores busy during the blocks", remedy, numbers
    )


def _drift(measurements: Sequence[Measurement], load: float | None) -> Warned | None:
    found = stats.drift([measurement.blocks for measurement in measurements])
    if found is None or not found.significant or abs(found.total) < DRIFT_MATTERS:
        return None
    if load is not None and load >= LOAD_MATTERS:
        cause = f"Other programs kept {load:.1f} cores busy: stop them."
    elif found.total < 0:
        cause = "Heat or a power limit lowers the clocks: let the machine settle, or fix its clock frequency."
    else:
        cause = "The machine was still speeding up: measure again now that it is warm."
    return Warned(
        "drift",
        f"throughput {'fell' if found.total < 0 else 'rose'} by {_percent(abs(found.total), 1)} over {found.seconds:.1f} s "
        "of measuring",
        f"{cause} Sizes were measured in turns, so they compare fairly all the same.",
        {
            "per_second": found.per_second,
            "per_second_low": found.low,
            "per_second_high": found.high,
            "seconds": found.seconds,
            "total": found.total,
        },
    )


def _fell_back(measurements: Sequence[Measurement], plan: Plan) -> Warned | None:
    sizes = [m.batch_size for m in measurements if m.prepared is not None and m.prepared.compiled is False]
    if not sizes:
        return None
    listed = ", ".join(map(str, sizes[:8])) + (f" and {len(sizes) - 8} more" if len(sizes) > 8 else "")
    asked = f"--compile {plan.compile}" if plan.compile else "compilation"
    return Warned(
        "compile",
        f"{asked} fell back to eager at batch size {listed}: the figures are those of the uncompiled model",
        "See the warning of the measuring process for the cause, or leave --compile away.",
        {"sizes": len(sizes)},
    )


def _percent(share: float, digits: int) -> str:
    return f"{100.0 * share:.{digits}f} %"
