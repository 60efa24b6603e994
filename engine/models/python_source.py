"""Models of the user's own Python code: an `nn.Module`, a class of one, or a function that builds one."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from engine.errors import ModelError
from engine.models import own_names, signature, usercode, weights
from engine.models.feeding import Feed, asked_for, described, feed, loaded
from engine.models.images import ImageLook
from engine.models.inputs import TensorSpec
from engine.models.source import ITEMS, LoadedModel, each_tensor
from engine.models.spec import PythonObject, argument_values, short_name
from engine.plan import Plan

INPUTS_FUNCTION = "batchpeak_inputs"


def load(spec: PythonObject, plan: Plan) -> LoadedModel:
    """Import the code as it is imported at home, build the model, and find out how to feed it.

    Raises ModelError for what the code does wrong, UsageError for options that do not fit it.
    """
    name = short_name(spec)
    code = _imported(spec)
    found = _attribute(code, spec)
    with usercode.running(f"{name}, while it was built,"):
        module = _built(name, found, argument_values(plan.model_args))
    if type(module).forward is nn.Module.forward:
        raise ModelError(
            f"{name} is {_kind(module)} without a forward, so it cannot be called.",
            title="not a model",
            remedy="Name the module that it is a part of.",
        )
    if plan.weights:
        weights.load_into(module, plan.weights)
    if any(parameter.is_meta for parameter in module.parameters()):
        raise ModelError(
            f"{name} has parameters without values (on the meta device).",
            title="a model without weights",
            remedy="Build it on a real device, e.g. with model.to_empty(device='cpu').",
        )
    with usercode.running(f"{name}, while it was put in eval mode,"):
        module.eval()
    fed = feed_of(
        name, module, plan, own_inputs=getattr(code, INPUTS_FUNCTION, None), own_file=bool(spec.file)
    )
    with_weights = f", weights of {Path(plan.weights).name}" if plan.weights else ""
    return loaded(
        name,
        module,
        fed,
        f"{type(module).__name__} of {spec.file.name if spec.file else spec.module}{with_weights}",
    )


def feed_of(
    name: str, module: nn.Module, plan: Plan, *, own_inputs: Any = None, own_file: bool = False
) -> Feed:
    """How to feed a module of the user's: by --input, by its own function, or by what the module says of itself.

    Raises ModelError with the signature of `forward` when none of them tells.
    """
    forward = signature.of(module.forward)
    specs = asked_for(plan)
    if specs is None and own_inputs is not None:
        if plan.image_dir:
            raise ModelError(
                f"{name} brings its own inputs ({INPUTS_FUNCTION}), and --image-dir names others.",
                title="two kinds of inputs",
                remedy="Describe the image with --input, for example --input 3x224x224, or leave --image-dir out.",
            )
        return _own_feed(name, own_inputs)
    look = ImageLook()
    if specs is None:
        known = _told_by(module)
        if known is None:
            raise signature.unknown_inputs(
                name, signature.in_text("forward", forward), signature.required(forward), own_file=own_file
            )
        specs, look = known
    signature.check_fits(name, forward, specs)
    return feed(specs, plan, look)


def _imported(spec: PythonObject) -> ModuleType:
    here = Path.cwd()
    if spec.file is None:
        own_names.enter([here], [sys.argv[0]])
        with usercode.running(f"{spec.module}, while it was imported,"):
            try:
                return importlib.import_module(spec.module)
            except ModuleNotFoundError as error:
                if error.name is None or not f"{spec.module}.".startswith(f"{error.name}."):
                    raise
                raise _no_module(spec.module, error.name) from error
    file = spec.file.resolve()
    if not file.is_file():
        raise ModelError(f"{spec.file} does not exist.", title="file not found")
    package = _package_of(file)
    root = file.parents[len(package)]
    own_names.enter([*dict.fromkeys([root, file.parent, here])], [str(spec.file)])
    with usercode.running(f"{spec.file.name}, while it was imported,"):
        if package:
            return importlib.import_module(".".join((*package, file.stem)))
        return _executed(file)


def _no_module(named: str, missing: str) -> ModelError:
    """The error for a dotted name of which some part is not there."""
    parent = missing.rpartition(".")[0]
    return ModelError(
        f"{named}: {f'{parent} has' if parent else 'there is'} no module {missing.rpartition('.')[2]}.",
        title="module not found",
        remedy="" if parent else "Run batchpeak from the folder that holds it, or set PYTHONPATH.",
    )


def _package_of(file: Path) -> tuple[str, ...]:
    """Names of the packages that the file lies in, outermost first, so that its relative imports work."""
    names: list[str] = []
    for folder in file.parents:
        if not (folder / "__init__.py").is_file() or not folder.name.isidentifier():
            break
        names.insert(0, folder.name)
    return tuple(names)


def _executed(file: Path) -> ModuleType:
    # A file called like a module that is loaded already (random.py) must not take its place in the process.
    name = file.stem if file.stem not in sys.modules and file.stem.isidentifier() else f"user_{file.stem}"
    module_spec = importlib.util.spec_from_file_location(name, file)
    if module_spec is None or module_spec.loader is None:
        raise ModelError(f"{file.name} is not a file of Python code.")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    module_spec.loader.exec_module(module)
    return module


def _attribute(code: ModuleType, spec: PythonObject) -> Any:
    found: Any = code
    for part in spec.attribute.split("."):
        if not hasattr(found, part):
            place = spec.file.name if spec.file else spec.module
            offers = [name for name, value in vars(code).items() if _is_model_like(value, code)]
            raise ModelError(
                f"{place} has no {spec.attribute}.",
                title="no such name in the file",
                remedy=f"It has: {', '.join(offers[:8])}." if offers else "",
            )
        found = getattr(found, part)
    return found


def _is_model_like(value: Any, code: ModuleType) -> bool:
    if isinstance(value, nn.Module):
        return True
    if isinstance(value, type):
        return issubclass(value, nn.Module) and value.__module__ == code.__name__
    return callable(value) and getattr(value, "__module__", None) == code.__name__


def _built(name: str, found: Any, arguments: Mapping[str, Any]) -> nn.Module:
    if isinstance(found, nn.Module):
        if arguments:
            raise ModelError(
                f"{name} is a model already, so it takes no arguments ({', '.join(arguments)}).",
                title="arguments for a finished model",
                remedy="Leave --model-arg out, or name the class or function that builds it.",
            )
        return found
    if isinstance(found, Mapping):
        raise _state_dict(name)
    if not callable(found):
        raise ModelError(
            f"{name} is {_kind(found)}, not an nn.Module or something that builds one.", title="not a model"
        )
    _check_arguments(name, found, arguments)
    made = found(**arguments)
    if isinstance(made, torch.export.ExportedProgram):
        made = made.module()
    if isinstance(made, Mapping):
        raise _state_dict(f"what {name}() returned")
    if not isinstance(made, nn.Module):
        raise ModelError(
            f"{name}() returned {_kind(made)}, not an nn.Module.",
            title="not a model",
            remedy="Name a class of nn.Module, or a function that returns one.",
        )
    return made


def _check_arguments(name: str, build: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    wanted = signature.of(build)
    if wanted is None:
        return
    try:
        wanted.bind(**arguments)
    except TypeError as error:
        lacking = [needed for needed in signature.required(wanted) if needed not in arguments]
        example = " ".join(f"--model-arg {needed}=VALUE" for needed in lacking)
        raise ModelError(
            f"{signature.in_text(name.rpartition(':')[2], wanted)}: {error}.",
            title="arguments that do not fit the model",
            remedy=f"Add {example}." if lacking else "Correct --model-arg.",
        ) from error


def _state_dict(name: str) -> ModelError:
    return ModelError(
        f"{name} is a dict of weights, without the code that uses them.",
        title="weights are not a model",
        remedy="Name the class or function that builds the model, and give the weights with --weights FILE.",
    )


def _kind(value: Any) -> str:
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _own_feed(name: str, own_inputs: Any) -> Feed:
    if not callable(own_inputs):
        raise ModelError(
            f"{INPUTS_FUNCTION} of {name} is {_kind(own_inputs)}, not a function of the batch size.",
            title="no inputs",
        )

    def make_inputs(batch_size: int) -> Any:
        # What it raises stays as it is: running out of memory here is the batch size's, not the model's.
        inputs, size = _batch(own_inputs(batch_size), batch_size)
        if size != batch_size:
            raise ValueError(f"{INPUTS_FUNCTION}({batch_size}) returned {size} items, not {batch_size}.")
        return inputs

    try:
        with usercode.running(f"{INPUTS_FUNCTION}(1)"):
            first = own_inputs(1)
    except ModelError:
        # A model for one batch size only may refuse to make inputs for another: the rows of those sizes will say so.
        return Feed(make_inputs, f"made by {INPUTS_FUNCTION}", ITEMS, None, None)
    try:
        inputs, size = _batch(first, 1)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ModelError(
            str(error),
            title="no inputs",
            remedy="It must return a tensor, a tuple of arguments, or a dict of keyword arguments.",
        ) from error
    return described(make_inputs, inputs, size)


def _batch(made: Any, asked: int) -> tuple[Any, int]:
    """What the user's function returned, as tensors, and how many items it holds. Raises ValueError when it holds none."""
    inputs = each_tensor(_as_tensor, made)
    sizes: list[int] = []
    each_tensor(lambda tensor: sizes.append(tensor.shape[0]) if tensor.ndim else None, inputs)
    if not sizes or not sizes[0]:
        raise ValueError(
            f"{INPUTS_FUNCTION}({asked}) returned {_kind(made)} without any tensor that has a batch dimension."
        )
    return inputs, sizes[0]


def _as_tensor(value: Any) -> Any:
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value)


def _told_by(module: nn.Module) -> tuple[tuple[TensorSpec, ...], ImageLook] | None:
    """The input that the module itself states: timm's configuration, or an example as Lightning modules keep it."""
    config = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
    if isinstance(config, Mapping) and config.get("input_size"):
        look = ImageLook(
            tuple(config.get("mean") or ()),
            tuple(config.get("std") or ()),
            float(config.get("crop_pct") or 1.0),
        )
        return (TensorSpec(tuple(config["input_size"])),), look
    example = getattr(module, "example_input_array", None)
    if isinstance(example, torch.Tensor) and example.ndim > 1 and example.is_floating_point():
        return (TensorSpec(tuple(example.shape[1:]), str(example.dtype).removeprefix("torch.")),), ImageLook()
    return None
