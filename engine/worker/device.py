"""The one interface through which the worker uses a device: wait for it, ask for its memory, move tensors to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import torch

from engine.errors import DeviceError
from engine.worker import memory, throttling


class Device(Protocol):
    """What measuring needs of a device. Tests script one that is asynchronous and runs out of memory."""

    @property
    def name(self) -> str:
        """As `--device` takes it, e.g. "cuda:0"."""

    @property
    def timing(self) -> str:
        """How calls are timed on it, in words."""

    @property
    def synchronize(self) -> Callable[[], object] | None:
        """Waits until the device has done all it was given; None when a call returns only when it is done."""

    def put(self, thing: Any) -> Any:
        """The tensor on this device; a module is moved in place. Other values stay as they are."""

    def memory_before(self) -> int | None:
        """Memory in use now, bytes, and the start of a new peak; None when it is not known."""

    def memory_peak(self) -> int | None:
        """The peak since `memory_before`, bytes."""

    def empty_cache(self) -> None:
        """Give memory that is kept for later, but not used, back to the system."""

    def slowed_by(self) -> tuple[str, ...]:
        """What keeps the device below its clock now, as its driver says, in words; empty when nothing does, or none tells."""


class CpuDevice:
    """The processor: calls return when they are done, memory is the process's resident size."""

    name = "cpu"
    timing = "wall time"
    synchronize: Callable[[], object] | None = None

    def put(self, thing: Any) -> Any:
        return thing

    def memory_before(self) -> int | None:
        memory.trim()
        return memory.reset_high_water()

    def memory_peak(self) -> int | None:
        return memory.high_water()

    def empty_cache(self) -> None:
        memory.trim()

    def slowed_by(self) -> tuple[str, ...]:
        return ()


class AcceleratorDevice:
    """cuda, xpu or mps, through torch.accelerator, which covers them alike."""

    timing = "wall time, synchronised after each call"

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.name = str(device)
        self.synchronize: Callable[[], object] | None = partial(torch.accelerator.synchronize, device)
        self._read_reasons = _reasons_reader(device)

    def put(self, thing: Any) -> Any:
        return thing.to(self._device) if isinstance(thing, torch.Tensor | torch.nn.Module) else thing

    def memory_before(self) -> int | None:
        if not self._counts_peaks():
            return None
        torch.accelerator.reset_peak_memory_stats(self._device)
        return torch.accelerator.memory_allocated(self._device)

    def memory_peak(self) -> int | None:
        if not self._counts_peaks():
            return None
        return torch.accelerator.max_memory_allocated(self._device)

    def empty_cache(self) -> None:
        torch.accelerator.empty_cache()

    def slowed_by(self) -> tuple[str, ...]:
        return self._read_reasons() if self._read_reasons is not None else ()

    def _counts_peaks(self) -> bool:
        # mps has no counter of peaks.
        return self._device.type in ("cuda", "xpu")


def _reasons_reader(device: torch.device) -> Callable[[], tuple[str, ...]] | None:
    if device.type != "cuda" or torch.version.hip is not None:
        return None
    # By its UUID: CUDA_VISIBLE_DEVICES renumbers devices for torch, not for the driver.
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return throttling.reader(str(uuid)) if uuid is not None else None


def available() -> tuple[str, ...]:
    """Names of the devices that this torch can use on this machine, the processor first."""
    found = ["cpu"]
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is not None:
        count = torch.accelerator.device_count()
        found += (
            [accelerator.type] if count == 1 else [f"{accelerator.type}:{index}" for index in range(count)]
        )
    return tuple(found)


def find(name: str) -> Device:
    """The device that `--device` names. Raises DeviceError, saying what there is, when this machine has it not."""
    usable = "Usable here: " + ", ".join(f"--device {known}" for known in available()) + "."
    try:
        wanted = torch.device(name)
    except RuntimeError as error:
        raise DeviceError(f"{name!r} is not the name of a device.", remedy=usable) from error
    if wanted.type == "cpu":
        return CpuDevice()
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is None or accelerator.type != wanted.type:
        raise DeviceError(
            f"{name!r} was asked for, but torch {torch.__version__} finds no {wanted.type} device here"
            f"{_reason(wanted.type)}.",
            remedy=usable,
        )
    count = torch.accelerator.device_count()
    index = wanted.index if wanted.index is not None else torch.accelerator.current_device_index()
    if index >= count:
        raise DeviceError(
            f"{name!r} was asked for, but there {'is' if count == 1 else 'are'} only {count}, counted from 0.",
            remedy=usable,
        )
    torch.accelerator.set_device_index(index)
    return AcceleratorDevice(torch.device(wanted.type, index))


def _reason(kind: str) -> str:
    if kind == "cuda" and torch.version.cuda is None and torch.version.hip is None:
        return ": this build of torch is made without CUDA"
    return ""
