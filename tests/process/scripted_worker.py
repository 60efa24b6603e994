"""A measuring process whose models are scripted: the real entry, with a loader that knows the names below."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from engine.worker.__main__ import main


def load(plan: Any, device: str) -> Any:
    """A LoadedModel by name; torch is imported here, as by the real loader."""
    import torch

    from engine.models.source import LoadedModel

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    print("loading", plan.model)
    if plan.model == "exits":
        sys.exit(3)
    if plan.model == "leaves":
        print("last words")
        os._exit(7)
    if plan.model == "threads":
        threading.Thread(target=lambda: time.sleep(3600), daemon=False).start()
    forward = FORWARDS.get(plan.model, _linear)

    class Scripted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(16, 10, dtype=torch.float32)

        def forward(self, images: torch.Tensor) -> Any:
            return forward(self.layer, images)

    module = Scripted()
    return LoadedModel(
        name=plan.model,
        call=module,
        make_inputs=lambda n: torch.ones(n, 16, dtype=torch.float32),
        parameters=170,
        input="16 float32",
        unit="items/s",
        description="scripted",
        module=module,
    )


def _linear(layer: Any, images: Any) -> Any:
    return layer(images)


def _prints(layer: Any, images: Any) -> Any:
    print('{"reply": "done"}')
    os.write(1, b'{"reply": "done"}\n')
    return layer(images)


def _asks(layer: Any, images: Any) -> Any:
    try:
        input("eats commands? ")
    except EOFError:
        return layer(images)
    raise AssertionError("there was something to read")


def _forks(layer: Any, images: Any) -> Any:
    # The child comes back into the worker's own code, as the fork of a careless data loader does.
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return layer(images)


def _in_c(layer: Any, images: Any) -> Any:
    """Minutes in one operation of torch."""
    import torch

    if len(images) > 1:
        print("in the long call")
        sys.stdout.flush()
        large = torch.ones(16000, 16000, dtype=torch.float32)
        return large @ large
    return layer(images)


def _pointwise(layer: Any, images: Any) -> Any:
    """Something that a compiler writes a kernel for."""
    return layer(images).sin().cos()


def _exits(layer: Any, images: Any) -> Any:
    if len(images) > 1:
        raise SystemExit("enough")
    return layer(images)


FORWARDS: dict[str, Callable[[Any, Any], Any]] = {
    "prints": _prints,
    "asks": _asks,
    "forks": _forks,
    "in-c": _in_c,
    "pointwise": _pointwise,
    "exits-in-call": _exits,
}

if __name__ == "__main__":
    main(load)
