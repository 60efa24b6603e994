"""Models that can be measured: from what a person names to a callable and its inputs.

`load` belongs in the measuring process. The parent process uses `check` (here) and `engine.models.catalogue`, which import
neither torch nor the user's code. The contract between source and measuring process is in `engine.models.source`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.models import own_names
from engine.models.preflight import check
from engine.models.spec import BuiltIn, ModelFile, PythonObject, parse

if TYPE_CHECKING:
    from engine.models.source import LoadedModel
    from engine.plan import Plan

__all__ = ["check", "load"]


def load(plan: Plan, device: str = "cpu") -> LoadedModel:
    """The plan's model in eval mode on the CPU, with its inputs; imports torch and runs the user's code.

    Forgets the modules of the user's that an earlier load imported, so that an edited file is read again.
    Raises ModelError (or another UsageError) for everything that the person can put right.
    """
    own_names.leave()
    check(plan)
    import torch

    torch.set_default_device(None)  # what an earlier model's code set is not the next one's home
    torch.set_default_dtype(torch.float32)
    # The user's code must not find itself in inference mode: parameters made there could not be compiled or exported.
    with torch.inference_mode(mode=False):
        return _load(plan, device)


def _load(plan: Plan, device: str) -> LoadedModel:
    match parse(plan.model):
        case BuiltIn():
            from engine.models import builtin

            return builtin.load(plan)
        case PythonObject() as python:
            from engine.models import python_source

            return python_source.load(python, plan)
        case ModelFile(file=file, format="onnx"):
            from engine.models import onnx_file

            return onnx_file.load(file, plan)
        case ModelFile(file=file):
            from engine.models import torch_file

            return torch_file.load(file, plan, device)
        case zoo:
            return _from_zoo(zoo.zoo, zoo.name, plan)


def _from_zoo(zoo: str, name: str, plan: Plan) -> LoadedModel:
    match zoo:
        case "torchvision":
            from engine.models import from_torchvision

            return from_torchvision.load(name, plan)
        case "timm":
            from engine.models import from_timm

            return from_timm.load(name, plan)
        case _:
            from engine.models import from_transformers

            return from_transformers.load(name, plan)
