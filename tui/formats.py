"""Figures as text, with only the digits that their interval supports. Pure; the command line and the interface share it."""

from __future__ import annotations

from datetime import datetime

from engine.digits import rounded

DASH = "—"
"""Stands for a figure that does not exist; never for zero."""


_ASCII = str.maketrans({
    "—": "-", "–": "-", "±": "+-", "×": "x", "·": "|", "…": "...", "µ": "u", "≤": "<=", "≥": ">=", "’": "'", "→": "->",
    "“": '"', "”": '"', "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ",
})  # fmt: skip


def throughput(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A figure with its 95 % interval in the same unit, e.g. "20,801" or "6,140"; the dash for none.

    Rounded as `engine.digits` says.
    """
    if value is None:
        return DASH
    half = None if low is None or high is None else (high - low) / 2.0
    return rounded(value, half)


def plus_minus(value: float | None, low: float | None, high: float | None) -> str:
    """Half the interval's width in percent of the value, e.g. "0.6 %"; the dash where there is no interval.

    Intervals are factors, so that beyond 100 % no number of per cent would say how far the value may be off.
    """
    if not value or low is None or high is None:
        return DASH
    half = (high - low) / 2.0 / value
    return ">100 %" if half > 1.0 else percent(half)


def percent(fraction: float) -> str:
    """A fraction in percent with two digits at the most: "0.6 %", "12 %", "<0.1 %"."""
    hundredths = abs(fraction) * 100.0
    sign = "-" if fraction < 0 else ""
    if hundredths == 0:
        return "0 %"
    if hundredths < 0.05:
        return f"<{sign}0.1 %" if not sign else "-0 %"
    return f"{sign}{hundredths:.1f} %" if hundredths < 9.95 else f"{sign}{hundredths:,.0f} %"


def ms(value: float | None) -> str:
    """A time in ms with three significant digits: "0.163", "29.2", "1,230"; the dash for none."""
    return DASH if value is None else rounded(value, None)


def ms_per_item(value: float | None, rate: float | None, low: float | None, high: float | None) -> str:
    """ms per item, with the digits that the throughput's interval supports (the relative half width is the same)."""
    if value is None:
        return DASH
    half = None if not rate or low is None or high is None else value * (high - low) / 2.0 / rate
    return rounded(value, half)


def percentile(value: float | None, calls: int) -> str:
    """A percentile in ms; where the calls do not suffice for it, the dash with their number: "— n = 40"."""
    return f"{DASH} n = {calls:,}" if value is None else ms(value)


def memory_mb(value: float | None) -> str:
    """Memory in MB: whole numbers, one decimal under 10; the dash for none."""
    if value is None:
        return DASH
    return f"{value:.1f}" if abs(value) < 9.95 and value != 0 else f"{value:,.0f}"


def size_mb(value: float) -> str:
    """Memory with the unit that reads best: "208 MB", "48 GB"."""
    if value < 1000:
        return f"{memory_mb(value)} MB"
    return f"{value / 1000:.1f} GB" if value < 9950 else f"{value / 1000:,.0f} GB"


def count(value: float | None) -> str:
    """A counted or averaged number, whole: "17,216"; the dash for none."""
    if value is None:
        return DASH
    return f"{value:.1f}" if 0 < value < 9.95 and value != int(value) else f"{value:,.0f}"


def speedup(value: float, low: float | None, high: float | None) -> str:
    """How many times faster: "4.13×", with the digits that its interval supports."""
    return throughput(value, low, high) + "×"


def span(low: float | None, high: float | None, *, unit: str = "") -> str:
    """An interval's two ends, "4.05 to 4.21"; "" where there is none."""
    if low is None or high is None:
        return ""
    half = (high - low) / 2.0
    ends = (rounded(end, half) for end in (low, high))
    return " to ".join(f"{end}{unit}" for end in ends)


def duration(seconds: float) -> str:
    """A span of time as people say it: "0.3 s", "12 s", "2 min 5 s", "1 h 2 min"."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 // 60 else "")


def when(started_at: str) -> str:
    """A time in ISO form as local time, "2026-03-01 10:00"; a text that is no time is returned as it is."""
    try:
        return datetime.fromisoformat(started_at).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OSError, OverflowError):
        return started_at


def to_ascii(text: str) -> str:
    """The text for a terminal or file that takes ASCII only; what has no likeness becomes "?"."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def as_sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) or not text else text + "."


def sentences(*parts: str) -> str:
    """What there is of the parts, each as a sentence, in a row."""
    return " ".join(as_sentence(part) for part in parts if part)
