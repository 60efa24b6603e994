"""Why an NVIDIA device runs slower than it could, in its driver's own words (NVML); nothing where those are not to be had."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

# Bits of nvmlDeviceGetCurrentClocksEventReasons, from NVML's header. An idle device and clocks that someone has set on
# purpose are no reasons to doubt a figure.
_REASONS = {
    0x04: "the power limit",
    0x08: "a hardware slowdown",
    0x20: "its temperature (software limit)",
    0x40: "its temperature (hardware limit)",
    0x80: "the power brake of the machine",
}
_QUERIES = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
"""The same question; the second name is that of older releases."""


def reasons_of(mask: int) -> tuple[str, ...]:
    """The reasons in a mask of NVML that slow a busy device down."""
    return tuple(text for bit, text in _REASONS.items() if mask & bit)


def reader(uuid: str, nvml: Any = None) -> Callable[[], tuple[str, ...]] | None:
    """Asks for the present reasons of the device with this UUID; None without pynvml or a driver that answers.

    `nvml` stands in for the module pynvml in tests.
    """
    if nvml is None:
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return None
    ask = next((getattr(nvml, name) for name in _QUERIES if hasattr(nvml, name)), None)
    if ask is None:
        return None
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}")
        ask(handle)
    except nvml.NVMLError:
        return None

    def read() -> tuple[str, ...]:
        try:
            return reasons_of(int(ask(handle)))
        except nvml.NVMLError:
            return ()

    return read
