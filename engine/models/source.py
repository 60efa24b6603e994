"""What every source of a model gives: a callable, and the inputs for it at any batch size.

How the parts share the work (the measuring process reads this first):

- `engine.models.load(plan, device)` returns a `LoadedModel`. It runs the user's code, so it belongs in the measuring process only.
- The module is in eval mode and as its source made it: on the CPU, float32, default memory format, eager. The inputs of
  `make_inputs(n)` are on the CPU and float32 (integers stay integers). Device, dtype, autocast, channels-last, compile and transfer
  are applied to both by the measuring process. Only a `torch.export` archive is moved to `device` here, by torch's own pass.
- `module is None` (ONNX): the model runs in its own runtime on numpy arrays; no option of torch applies, threads were already set.
  `engine.models.check(plan)` has refused the options that a source cannot honour, so nobody needs to ask again.
- One call is `model.call(inputs)`. When the module was replaced (compiled, wrapped): `calling(replacement, inputs)` gives the same for it.
  For a single tensor both are the module itself, so that no Python of ours is inside the timing.
- `each_tensor`, `take` and `megabytes` know the forms that inputs come in: a tensor or array, a tuple or list, a dict of them.
- Outputs may be anything: tensor, array, tuple, list, dict, dataclass, None.
- User code may change threads, the default dtype or the seed while it is loaded: set ours after `load`.
- After `load` of a Python source, `import engine` means the user's `engine.py` if there is one. So the measuring process imports its own
  modules at the top of its files, never inside functions that run after a load. The next `load` takes the names back first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

IMAGES = "images/s"
ITEMS = "items/s"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to be called, and how to feed it. Of one thread only: models need not be thread-safe."""

    name: str
    call: Callable[[Any], Any]
    """One forward pass over inputs as `make_inputs` returns them (moved, converted and sliced ones too)."""
    make_inputs: Callable[[int], Any]
    """Inputs for a batch size. The same size gives the same values; a larger size begins with those of a smaller one."""
    parameters: int | None
    """Number of parameters; None when the source does not tell."""
    input: str
    """One item in words, e.g. "1x28x28 float32"."""
    unit: str
    """"images/s", or "items/s" when the input is not an image."""
    description: str
    """Where it came from and with which weights, in a few words."""
    module: nn.Module | None
    """None when the model does not run in torch."""
    input_mb_per_item: float | None = None
    """Size of one item's inputs, 10^6 bytes."""
    batch_hint: str = ""
    """A sentence for the rows that fail when the model takes certain batch sizes only, e.g. of a file exported for 8; else ""."""
    only_batch_size: int | None = None
    """The one batch size that the source can be called with, when it says so; None when it takes any, or does not tell."""
    ignored_threads: bool = False
    """True when `torch.set_num_threads` does not reach the model: its own runtime was given the threads."""


def calling(forward: Callable[..., Any], inputs: Any) -> Callable[[Any], Any]:
    """How to call `forward` with inputs of this form: a mapping by keyword, a tuple or list by position, else as the one argument."""
    if isinstance(inputs, Mapping):
        return lambda batch: forward(**batch)
    if isinstance(inputs, tuple | list):
        return lambda batch: forward(*batch)
    return forward


def each_tensor(change: Callable[[Any], Any], inputs: Any) -> Any:
    """The inputs in the same form with `change` applied to every tensor or array; other values stay as they are."""
    if isinstance(inputs, Mapping):
        return {name: each_tensor(change, value) for name, value in inputs.items()}
    if isinstance(inputs, tuple | list):
        return tuple(each_tensor(change, value) for value in inputs)
    return change(inputs) if hasattr(inputs, "shape") else inputs


def take(inputs: Any, start: int, stop: int) -> Any:
    """Items `start` to `stop` of a batch, as views: every tensor is sliced along its first dimension."""
    return each_tensor(lambda tensor: tensor[start:stop] if tensor.ndim else tensor, inputs)


def megabytes(inputs: Any) -> float:
    """Size of all tensors or arrays of the inputs, 10^6 bytes."""
    total = 0

    def add(tensor: Any) -> Any:
        nonlocal total
        total += int(tensor.nbytes)
        return tensor

    each_tensor(add, inputs)
    return total / 1e6
