"""The process's own memory on Linux: how far its resident size grew beyond what it was, by the kernel's high-water mark."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from pathlib import Path

from engine import host

_PROC = Path("/proc/self")
_RESET_HIGH_WATER = "5"
"""Written to clear_refs: set VmHWM back to the present VmRSS (proc(5))."""


def trim() -> None:
    """Give memory that was freed back to the system, where the C library can (glibc); else it would hide what a call takes."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def reset_high_water(proc: Path = _PROC) -> int | None:
    """Set the high-water mark back and return the resident size, bytes; None where the system cannot do that."""
    try:
        (proc / "clear_refs").write_text(_RESET_HIGH_WATER, encoding="ascii")
    except OSError:
        return None
    return _status(proc, "VmRSS")


def high_water(proc: Path = _PROC) -> int | None:
    """The largest resident size since `reset_high_water`, bytes."""
    return _status(proc, "VmHWM")


def growth_mb(before: int | None, peak: int | None) -> float | None:
    """Megabytes (10^6 bytes) from `before` to `peak`, at least 0; None when one of them is not known."""
    if before is None or peak is None:
        return None
    return max(peak - before, 0) / host.MB


def _status(proc: Path, name: str) -> int | None:
    try:
        lines = (proc / "status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    return None
