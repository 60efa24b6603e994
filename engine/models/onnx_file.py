"""ONNX models, run by onnxruntime on the CPU on numpy arrays; the same measuring, the same table."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import host
from engine.errors import ModelError
from engine.models import usercode
from engine.models.feeding import asked_for, feed
from engine.models.inputs import TensorSpec, in_words
from engine.models.source import LoadedModel, each_tensor
from engine.plan import Plan

_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int16)": "int16",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}


def load(file: Path, plan: Plan) -> LoadedModel:
    """A session with the plan's threads. Raises ModelError for a damaged file, missing external data, unknown shapes."""
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = plan.threads or host.usable_cores().cores
    options.inter_op_num_threads = plan.inter_op_threads or 1
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise _unloadable(file, error) from error
    inputs = session.get_inputs()
    specs = _specs(file, inputs, asked_for(plan))
    fed = feed(specs, plan, keyword=True)

    def make_inputs(batch_size: int) -> Any:
        return each_tensor(lambda tensor: tensor.numpy(), fed.make_inputs(batch_size))

    def call(batch: Any) -> Any:
        return session.run(None, batch)

    batches = {entry.shape[0] for entry in inputs if entry.shape and isinstance(entry.shape[0], int)}
    fixed = batches.pop() if len(batches) == 1 else None
    shown = tuple(replace(spec, name="") for spec in specs) if len(specs) == 1 else specs
    return LoadedModel(
        name=file.name,
        call=call,
        make_inputs=make_inputs,
        parameters=None,
        input=in_words(shown) + (" from a folder" if plan.image_dir else ""),
        unit=fed.unit,
        description=f"ONNX, onnxruntime {runtime.__version__}",
        module=None,
        input_mb_per_item=fed.input_mb_per_item,
        batch_hint=f"The file was exported for batch size {fixed} only; export it again with a dynamic first dimension."
        if fixed
        else "",
        only_batch_size=fixed,
        ignored_threads=True,
    )


def _specs(file: Path, inputs: Sequence[Any], asked: tuple[TensorSpec, ...] | None) -> tuple[TensorSpec, ...]:
    if asked is not None:
        names = [entry.name for entry in inputs]
        if len(asked) != len(inputs) or any(spec.name and spec.name not in names for spec in asked):
            raise ModelError(
                f"{file.name} takes {', '.join(names)}, and --input describes {in_words(asked)}.",
                title="the inputs do not fit the model",
            )
        return tuple(replace(spec, name=spec.name or name) for spec, name in zip(asked, names, strict=True))
    return tuple(_spec(file, entry, inputs) for entry in inputs)


def _spec(file: Path, entry: Any, inputs: Sequence[Any]) -> TensorSpec:
    dtype = _DTYPES.get(entry.type)
    if dtype is None:
        raise ModelError(
            f"{file.name}: the input {entry.name} is {entry.type}, which cannot be made.",
            title="inputs that cannot be made",
        )
    shape = list(entry.shape or [])
    if not shape or not all(isinstance(side, int) and side > 0 for side in shape[1:]):
        example = ",".join(_example(one) for one in inputs)
        shown = "x".join(map(str, shape)) or "of unknown shape"
        raise ModelError(
            f"{file.name}: the input {entry.name} is {shown}, of which not every side is known.",
            title="which inputs?",
            remedy=f"Describe one item with --input, for example --input {example}.",
        )
    return TensorSpec(tuple(shape[1:]), dtype, entry.name, 2 if dtype.startswith("int") else None)


def _example(entry: Any) -> str:
    dtype = _DTYPES.get(entry.type, "float32")
    sides = list(entry.shape or [])[1:]
    fallback = 128 if dtype.startswith("int") else 224
    shape = "x".join(str(side) if isinstance(side, int) and side > 0 else str(fallback) for side in sides)
    return f"{entry.name}:{shape or ('128' if dtype.startswith('int') else '3x224x224')}:{dtype}"


def _unloadable(file: Path, error: Exception) -> ModelError:
    words = usercode.in_words(error)
    if "external data" in words.lower():
        return ModelError(
            f"{file.name} keeps its weights in another file, which is missing: {_tail(words)}",
            title="the model's weights are missing",
            remedy=f"Put that file beside {file.name}, under the name it was exported with.",
        )
    if "protobuf" in words.lower():
        return ModelError(
            f"{file} is not a complete ONNX file.",
            title="a damaged file",
            remedy="Copy or export it again; a size that differs from the original's shows a copy that stopped early.",
        )
    return ModelError(f"{file} cannot be loaded by onnxruntime: {words}.")


def _tail(words: str) -> str:
    # The runtime's text begins with its own source file and line; the path that it looked for is quoted at the end.
    quoted = re.findall(r'"([^"]+)"', words)
    return f"{quoted[-1]}." if quoted else words
