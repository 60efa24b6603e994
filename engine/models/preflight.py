"""What can be said about a model before a process is started: files, names, extras, options. Imports neither torch nor user code."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from engine.errors import DeviceError, ModelError, UsageError
from engine.models import archive, images, usercode
from engine.models.inputs import parse_input
from engine.models.spec import BuiltIn, ModelFile, PythonObject, Spec, ZooModel, parse
from engine.paths import expanded, is_file, is_folder
from engine.plan import Plan

EXTRAS = {"onnx": "onnxruntime", "torchvision": "torchvision", "timm": "timm", "hf": "transformers"}
"""Extra of batchpeak -> the package that it brings."""
CACHED = "cached"
"""Value of --weights for a library's own pretrained weights, when an earlier download left them on this machine."""


def check(plan: Plan) -> None:
    """Raises ModelError, or a UsageError naming the option, for what is known to fail; silence promises nothing."""
    spec = parse(plan.model)
    match spec:
        case PythonObject(file=None, module=module):
            _check_module(module)
        case PythonObject(file=Path() as file, attribute=attribute):
            _check_python_file(file, attribute)
        case ModelFile(file=file, format=form):
            _check_exists(file)
            if form == "onnx":
                check_extra("onnx")
            else:
                _check_torch_file(file, plan)
        case ZooModel(zoo=zoo, name=name):
            check_extra(zoo)
            if zoo == "hf" and name.startswith((".", "/", "~")) and not is_folder(expanded(name)):
                raise ModelError(f"{name} is not a folder.", title="folder not found")
        case BuiltIn():
            pass
    _check_options(spec, plan)
    _check_inputs(spec, plan)


def check_extra(extra: str) -> None:
    """Raises ModelError with the command that installs it when the extra's package is missing."""
    package = EXTRAS[extra]
    if importlib.util.find_spec(package) is None:
        raise ModelError(
            f"this kind of model needs {package}, which is not installed.",
            title=f"{package} is missing",
            remedy=f"Install it with: pip install 'batchpeak[{extra}]'",
        )


def _check_exists(file: Path) -> None:
    if is_file(file):
        return
    if is_folder(file):
        raise ModelError(
            f"{file} is a folder, not a file.",
            title="not a file",
            remedy=f"A folder of a transformers model is named hf:{file}.",
        )
    near: list[str] = []
    if is_folder(file.parent) and os.access(file.parent, os.R_OK):
        here = [entry.name for entry in file.parent.iterdir() if entry.suffix == file.suffix]
        near = difflib.get_close_matches(file.name, here, n=1)
    raise ModelError(
        f"{file} does not exist.",
        title="file not found",
        remedy=f"Did you mean {file.parent / near[0]}?" if near else "",
    )


def _check_module(module: str) -> None:
    top = module.partition(".")[0]
    if top in sys.builtin_module_names or PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is not None:
        return
    if importlib.util.find_spec(top) is None:
        raise ModelError(
            f"there is no module {top} in this folder or among the installed packages.",
            title="module not found",
            remedy="Run batchpeak from the folder that holds it, or set PYTHONPATH.",
        )


def _check_python_file(file: Path, attribute: str) -> None:
    _check_exists(file)
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except SyntaxError as error:
        raise usercode.syntax_error(error) from error
    except (ValueError, OSError, RecursionError) as error:
        raise ModelError(f"{file} cannot be read as Python: {error}.", title="not valid Python") from error
    names = list(_top_level_names(tree.body))
    wanted = attribute.partition(".")[0]
    if "*" in names or "__getattr__" in names or wanted in names:
        return  # found, or defined in a way that only running it can tell
    offers = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    near = difflib.get_close_matches(wanted, names, n=1)
    remedy = (
        f"Did you mean {file}:{near[0]}?" if near else f"It has: {', '.join(offers[:8])}." if offers else ""
    )
    raise ModelError(f"{file.name} has no {wanted}.", title="no such name in the file", remedy=remedy)


def _top_level_names(body: list[ast.stmt]) -> Iterator[str]:
    """Names that the statements bind; "*" for a star import and for names that are made while it runs."""
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.name
            continue
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                yield alias.asname or alias.name.partition(".")[0]
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.ClassDef | ast.FunctionDef):
                yield node.name
            elif isinstance(node, ast.alias):
                yield node.asname or node.name.partition(".")[0]
            elif isinstance(node, ast.Name) and node.id in ("globals", "vars", "exec"):
                yield "*"


def _check_torch_file(file: Path, plan: Plan) -> None:
    holds = archive.content_of(file)
    if holds == "weights":
        raise archive.state_dict(file)
    if holds == "pickle" and not plan.trust:
        raise archive.untrusted(file)
    if holds == "script" and plan.compile is not None:
        raise UsageError(
            f"{file.name} is TorchScript, which torch.compile leaves as it is.",
            argument="--compile",
            title="cannot be compiled",
        )
    if holds == "export" and plan.dtype != "float32" and not plan.autocast:
        raise UsageError(
            f"{file.name} is a torch.export program, which has its dtypes written into it.",
            argument="--dtype",
            title="a fixed dtype",
            remedy="Export the model again in that dtype, or try --autocast.",
        )


def _check_options(spec: Spec, plan: Plan) -> None:
    takes_arguments = isinstance(spec, PythonObject | ZooModel)
    if plan.model_args and not takes_arguments:
        raise UsageError(
            f"{plan.model} is a finished model, so it takes no arguments.", argument="--model-arg"
        )
    if plan.weights and not takes_arguments:
        raise UsageError(f"{plan.model} has its weights already.", argument="--weights")
    if plan.weights == CACHED and isinstance(spec, PythonObject):
        raise UsageError(
            f"'{CACHED}' is for torchvision, timm and transformers models; expected a file of weights.",
            argument="--weights",
        )
    if plan.weights and plan.weights != CACHED and not is_file(expanded(plan.weights)):
        folder = is_folder(expanded(plan.weights))
        raise UsageError(
            f"{plan.weights} is a folder, not a file." if folder else f"{plan.weights} does not exist.",
            argument="--weights",
            title="not a file" if folder else "file not found",
            remedy=f"Expected a file, or '{CACHED}' for a library's pretrained weights that are on this machine already.",
        )
    if isinstance(spec, ModelFile) and spec.format == "onnx":
        _check_onnx_options(plan)


def _check_onnx_options(plan: Plan) -> None:
    if plan.device.partition(":")[0] != "cpu":
        raise DeviceError(
            f"ONNX models are run on the CPU here, not on {plan.device}.", remedy="Leave --device out."
        )
    refused = {
        "--dtype": plan.dtype != "float32",
        "--autocast": plan.autocast,
        "--channels-last": plan.channels_last,
        "--compile": plan.compile is not None,
        "--transfer": plan.transfer,
    }
    for option, given in refused.items():
        if given:
            raise UsageError(
                f"{option} is an option of torch, and an ONNX model does not run in torch.",
                argument=option,
                remedy="Leave it out, or export the model accordingly.",
            )


def _check_inputs(spec: Spec, plan: Plan) -> None:
    if plan.input is not None:
        parse_input(plan.input)
        if isinstance(spec, BuiltIn):
            raise UsageError(
                "the built-in model takes its own images, 1x28x28.",
                argument="--input",
                remedy="Leave --input out, or feed images of yours with --image-dir.",
            )
    if plan.image_dir is not None:
        images.check_folder(plan.image_dir)
