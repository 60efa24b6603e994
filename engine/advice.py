"""The verdict in one or two plain sentences: what to deploy, why, and what is not known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine import events
from engine.digits import rounded
from engine.limits import limit_words
from engine.results import Measurement
from engine.standing import Standing, cut_at
from engine.stats import MIN_BLOCKS


def advise(
    measurements: Sequence[Measurement],
    standing: Standing,
    limit: events.Limit | None,
    recommended: int | None,
    *,
    unit: str,
) -> str:
    """What a person should do. `unit` is that of the throughput, e.g. "images/s"."""
    peak = standing.peak
    if peak is None or standing.field is None:
        return _nothing(measurements)
    if limit is not None:
        return " ".join((_under_limit(standing, limit, peak, unit), *_otherwise(standing, unit)))
    if len(standing.field.sizes) == 1:
        return " ".join(
            (
                f"Only batch size {peak} has figures that count: nothing to compare it with."
                if any(one.batch_size != peak and one.blocks for one in measurements)
                else f"Only batch size {peak} was measured: nothing to compare it with.",
                *_end(measurements, standing, peak),
                *_doubt(standing, unit),
            )
        )
    if standing.undecided:
        return " ".join(
            (_fallen(standing, peak, recommended or peak, unit), *_end(measurements, standing, peak))
        )
    says = (
        _deploy(standing, peak, recommended or peak, unit) if standing.certain else _uncertain(standing, peak)
    )
    return " ".join((says, *_end(measurements, standing, peak), *_doubt(standing, unit)))


def _deploy(standing: Standing, peak: int, recommended: int, unit: str) -> str:
    tied = [size for size in standing.ties if size != recommended]
    beside = f", tied with {listed(tied)}" if tied else ""
    if recommended == peak:
        speed = standing.throughput(peak)
        return (
            f"Deploy {peak}: the peak, at {rounded(speed.value, speed.half_width)} {unit}{beside}."
            if speed
            else f"Deploy {peak}: the peak."
        )
    return (
        f"Deploy {recommended}: surely 95 % of the peak ({peak}{beside}) at {latency_share(standing, recommended)} "
        "of its latency."
    )


def _uncertain(standing: Standing, peak: int) -> str:
    short, counting, knee = standing.short, standing.counting, standing.knee
    if counting is not None and max(counting.counts) < MIN_BLOCKS:
        return f"Cannot tell the peak yet: too few blocks of each size. {peak} leads; measure longer to know."
    if short:
        why = f"too few blocks of {listed(short)}"
    else:
        why = f"{span(sorted((peak, *standing.ties)), standing)} tie within the noise"
    sure = counting is not None and knee is not None and min(map(counting.blocks, (knee, peak))) >= MIN_BLOCKS
    if knee is not None and knee != peak and sure:
        return (
            f"Deploy {knee}: surely 95 % of {peak}, the fastest so far, at "
            f"{latency_share(standing, knee)} of its latency. Cannot tell the peak itself: {why}."
        )
    if short:
        return f"Cannot tell the peak yet: {why}. {peak} leads; measure longer to know."
    return f"Cannot tell the peak: {why}. {peak} leads; measure longer to be sure."


def _fallen(standing: Standing, peak: int, recommended: int, unit: str) -> str:
    """Some sizes lost their speed in a process of their own, and others may that none has confirmed."""
    if peak in standing.fallen or peak in standing.undecided:
        return (
            f"Cannot tell the peak: in a fresh process {_lost(standing)}, so {_open(standing)}. "
            "Measure every size in a fresh process."
        )
    speed = standing.throughput(peak)
    at = f", at {rounded(speed.value, speed.half_width)} {unit}" if speed else ""
    if recommended == peak:
        says = f"Deploy {peak}: the fastest that a fresh process confirms{at}."
    else:
        says = (
            f"Deploy {recommended}: surely 95 % of {peak}, the fastest that a fresh process confirms, "
            f"at {latency_share(standing, recommended)} of its latency."
        )
    return f"{says} {_lost(standing)} there, so {_open(standing)}."


def _lost(standing: Standing) -> str:
    return f"{listed(standing.fallen)} {'is' if len(standing.fallen) == 1 else 'are'} slower"


def _open(standing: Standing) -> str:
    return f"what {listed(standing.undecided)} reached among the other sizes proves nothing"


def _under_limit(standing: Standing, limit: events.Limit, peak: int, unit: str) -> str:
    if limit.best is None:
        text = limit.text[:1].upper() + limit.text[1:] + "."
        return (
            text
            if any(v.verdict == "unknown" for v in limit.verdicts)
            else f"{text} {f'The peak without it: {peak}' if standing.certain else f'{peak} leads without it'}."
        )
    speed = standing.throughput(limit.best)
    at = f" at {rounded(speed.value, speed.half_width)} {unit}" if speed else ""
    if at and limit.best in standing.unproven:
        at += " among the other sizes"
    ratio = standing.ratio(limit.best)
    named = f"the peak ({peak})" if standing.certain else f"{peak}, the fastest so far"
    of_peak = (
        ""
        if limit.best == peak or ratio is None or ratio >= 1.0 or limit.best in standing.undecided
        else f", {ratio:.0%} of {named}".replace("%", " %")
    )
    leads = "the peak" if standing.certain else "it leads so far"
    which = f"{leads}, and its" if limit.best == peak else "the fastest size whose"
    sentence = (
        f"Deploy {limit.best}: {which} p{limit.percentile} stays under {limit_words(limit.ms)}{at}{of_peak}."
    )
    rest = limit.text.partition("; ")[2]
    return f"{sentence} {rest[:1].upper()}{rest[1:]}." if rest else sentence


def _end(measurements: Sequence[Measurement], standing: Standing, peak: int) -> list[str]:
    """What lies beyond the measured sizes, when the peak is at their end."""
    largest = standing.field.sizes[-1] if standing.field else peak
    cut = cut_at(measurements, largest)
    if standing.kind == "memory" and cut is not None:
        return [f"Cut by memory: {cut} does not fit."]
    if standing.kind == "rising":
        # Of a largest size that fell, nobody knows what the others would reach as it was measured.
        return (
            []
            if peak in standing.fallen and standing.undecided
            else [f"Throughput still rises at {largest}, the largest size measured."]
        )
    return []


def _doubt(standing: Standing, unit: str) -> list[str]:
    """What fresh processes said otherwise: with both figures where that is one size."""
    other = standing.unconfirmed
    if not other:
        return []
    if len(other) == 1:
        fresh, in_run = standing.figures[other[0]], standing.of_run[other[0]]
        alone, among = (rounded(one.value, one.half_width) for one in (fresh, in_run))
        return [f"In a fresh process {other[0]} reaches {alone} {unit}, not {among}."]
    rose = [size for size in other if size not in standing.fallen]
    changed = " and ".join(
        f"{listed(sizes)} {'is' if len(sizes) == 1 else 'are'} {how}"
        for sizes, how in ((standing.fallen, "slower"), (rose, "faster"))
        if sizes
    )
    return [f"In a fresh process {changed}; the figures from there count."]


def _otherwise(standing: Standing, unit: str) -> list[str]:
    if standing.undecided:
        return [f"In a fresh process {_lost(standing)}, so {_open(standing)}."]
    return _doubt(standing, unit)


def _nothing(measurements: Sequence[Measurement]) -> str:
    for known in measurements:
        if known.failure is not None:
            return (
                f"Nothing could be measured. Batch size {known.batch_size}: "
                f"{known.failure.title}: {known.failure.message}"
            )
    if any(known.blocks for known in measurements):
        return (
            "Nothing to recommend: at no size did the model process what it was given with plausible outputs."
        )
    return "Nothing was measured."


_SHARES = (
    (1 / 10, "a tenth"),
    (1 / 8, "an eighth"),
    (1 / 5, "a fifth"),
    (1 / 4, "a quarter"),
    (1 / 3, "a third"),
    (1 / 2, "half"),
    (2 / 3, "two thirds"),
    (3 / 4, "three quarters"),
)


def latency_share(standing: Standing, batch_size: int) -> str:
    """The time of a call relative to one at the peak, in words: "a quarter", or "26 %" where no word is near."""
    ratio = standing.ratio(batch_size)
    if ratio is None or standing.peak is None:
        return "less"
    share = batch_size / standing.peak / ratio
    name = min(_SHARES, key=lambda pair: abs(math.log(pair[0] / share)))
    return name[1] if abs(math.log(name[0] / share)) < 0.07 else f"{share:.0%}".replace("%", " %")


def span(sizes: Sequence[int], standing: Standing) -> str:
    """Sizes in words: "64 to 256" when all measured sizes between are among them, else a list."""
    measured = [
        size for size in (standing.field.sizes if standing.field else ()) if sizes[0] <= size <= sizes[-1]
    ]
    if len(sizes) > 2 and list(sizes) == measured:
        return f"{sizes[0]} to {sizes[-1]}"
    return listed(sizes)


def listed(sizes: Sequence[int]) -> str:
    """ "64", "64 and 128", "64, 96 and 128"; long lists are cut to their ends."""
    if len(sizes) > 5:
        return f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]}"
    if len(sizes) < 2:
        return ", ".join(map(str, sizes))
    return f"{', '.join(map(str, sizes[:-1]))} and {sizes[-1]}"
