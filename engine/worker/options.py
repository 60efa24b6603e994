"""The options that change figures, applied to a loaded model in one place: threads, dtype, layout, compile, transfer, device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from engine import host
from engine.errors import UsageError
from engine.models.source import LoadedModel, calling, each_tensor
from engine.plan import Plan
from engine.worker.device import Device
from engine.worker.loop import Step

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_COMPILED_SIZES = 4096
"""Torch gives up compiling after 8 shapes, silently; a sweep has more."""


class Threads:
    """The number of threads the plan asks for, held against user code that changes it (some packages set 1 on import)."""

    def __init__(self, plan: Plan) -> None:
        self.count = plan.threads or host.usable_cores().cores
        if plan.inter_op_threads is not None and torch.get_num_interop_threads() != plan.inter_op_threads:
            try:
                torch.set_num_interop_threads(plan.inter_op_threads)
            except RuntimeError as error:
                raise UsageError(
                    "it can be set once only, before the first parallel work of a process.",
                    argument="--inter-op-threads",
                    remedy="Start again with this value from the beginning.",
                ) from error

    def hold(self) -> None:
        """Set the threads and the default dtype again, if anything changed them."""
        if torch.get_num_threads() != self.count:
            torch.set_num_threads(self.count)
        if torch.get_default_dtype() != torch.float32:
            torch.set_default_dtype(torch.float32)


@dataclass(slots=True)
class Configured:
    """A model on its device with the plan's options; makes inputs to match, and the step that is timed."""

    loaded: LoadedModel
    device: Device
    plan: Plan
    compiled: torch.nn.Module | Callable[..., Any] | None = None

    @property
    def memory_is_known(self) -> bool:
        """A preloaded allocator keeps memory in its own way, so that on the processor growth says too little."""
        return self.device.synchronize is not None or self.plan.allocator in ("system", "keep")

    def make_inputs(self, count: int) -> Any:
        """Inputs of `count` items as they are before the timing: on the device, or ready to be sent when `transfer` is timed."""
        inputs = self.loaded.make_inputs(count)
        if self.loaded.module is None:
            return inputs
        inputs = each_tensor(self._converted, inputs)
        return inputs if self.plan.transfer else each_tensor(self.device.put, inputs)

    def step(self, inputs: Any, *, compiled: bool) -> Step:
        """One call over these inputs, waited for. As little of our own Python as can be: one call of about 0.1 us."""
        call = self.loaded.call
        if compiled and self.compiled is not None:
            call = calling(self.compiled, inputs)
        in_torch = self.loaded.module is not None
        if self.plan.autocast and in_torch:
            call = _autocast(call, self.device, DTYPES[self.plan.dtype])
        if self.plan.transfer and in_torch:
            call = _with_transfer(call, self.device)
        synchronize = self.device.synchronize if in_torch else None
        if synchronize is None:
            return partial(call, inputs)

        def waited() -> object:
            output = call(inputs)
            synchronize()
            return output

        return waited

    def _converted(self, tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor
        if tensor.is_floating_point() and not self.plan.autocast:
            tensor = tensor.to(DTYPES[self.plan.dtype])
        if self.plan.channels_last and tensor.ndim == 4:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        if self.plan.transfer and self.device.synchronize is not None:
            # As a service would: only pinned memory is copied at full speed.
            with contextlib.suppress(RuntimeError):  # a device without pinned memory
                tensor = tensor.pin_memory()
        return tensor


def configure(loaded: LoadedModel, plan: Plan, device: Device) -> Configured:
    """Move, convert and compile the model as the plan says. Inputs that are made later follow."""
    module = loaded.module
    configured = Configured(loaded, device, plan)
    if module is None:
        return configured
    device.put(module)
    if not plan.autocast and plan.dtype != "float32":
        module.to(DTYPES[plan.dtype])
    if plan.channels_last:
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if plan.compile is not None:
        _compile_every_size()
        try:
            configured.compiled = torch.compile(module, mode=plan.compile, dynamic=False)
        except RuntimeError as error:
            raise UsageError(str(error), argument="--compile") from error
    return configured


def is_compiler_failure(exception: BaseException) -> bool:
    """Whether the compiler failed, not the model: the model then runs eager, and that is said."""
    homes = ("torch._dynamo", "torch._inductor")
    return any(kind.__module__.startswith(homes) for kind in type(exception).__mro__)


def _compile_every_size() -> None:
    config = torch._dynamo.config  # noqa: SLF001 - the documented place of these settings
    config.recompile_limit = _COMPILED_SIZES
    config.accumulated_recompile_limit = _COMPILED_SIZES
    config.fail_on_recompile_limit_hit = True


def _autocast(call: Callable[[Any], Any], device: Device, dtype: torch.dtype) -> Callable[[Any], Any]:
    kind = torch.device(device.name).type
    # Entered for every call, as a service does: one context around all calls would keep the converted weights.
    low = torch.bfloat16 if dtype == torch.float32 else dtype

    def inside(inputs: Any) -> Any:
        with torch.autocast(kind, dtype=low):
            return call(inputs)

    return inside


def _with_transfer(call: Callable[[Any], Any], device: Device) -> Callable[[Any], Any]:
    def sent(inputs: Any) -> Any:
        return call(each_tensor(device.put, inputs))

    return sent
