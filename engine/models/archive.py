"""What a file written by torch holds, found out without running anything in it and without torch."""

from __future__ import annotations

import pickle
import pickletools
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from engine.errors import ModelError
from engine.models.inputs import TensorSpec

Holds = Literal["script", "export", "pickle", "weights"]
"""A TorchScript program, a torch.export program, pickled objects that run code when loaded, or tensors and plain values only."""

_PLAIN = re.compile(
    r"^(collections OrderedDict|torch\._utils _rebuild_\w+|torch \w+Storage|torch\.storage \w+"
    r"|torch (Size|device|bool|b?float\d+|u?int\d+|complex\d+)"
    r"|torch\.serialization _get_layout|numpy dtype|numpy(\.\w+)* (_reconstruct|scalar|ndarray)|_codecs encode)$"
)
_LEGACY_PICKLES = 4
"""Before zip files: torch wrote a magic number, a version, facts of the system and then the object, each a pickle."""
_ZIP = b"PK\x03\x04"
_LFS = b"version https://git-lfs"


def content_of(file: Path) -> Holds:
    """What the file holds. Raises ModelError when it is none of these, cut short, or cannot be read."""
    try:
        with file.open("rb") as stream:
            start = stream.read(4)
            pointer = start + stream.read(len(_LFS) - 4) == _LFS
        if start == _ZIP:
            return _zip_content(file)
        if start[:1] == b"\x80":
            return _legacy_content(file)
    except zipfile.BadZipFile as error:
        raise broken(file, "its end is missing or damaged") from error
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}.") from error
    if not start:
        raise broken(file, "it is empty")
    if pointer:
        raise ModelError(
            f"{file} is a pointer of Git LFS, not the file itself.",
            title="not a torch file",
            remedy="Fetch it: git lfs pull",
        )
    raise ModelError(
        f"{file} was not written by torch: it begins with {start!r}.",
        title="not a torch file",
        remedy="Expected TorchScript (torch.jit.save), a torch.export archive, or what torch.save writes.",
    )


@dataclass(frozen=True, slots=True)
class Traced:
    """The inputs that a model was traced with: one item of them, and their batch size."""

    specs: tuple[TensorSpec, ...]
    batch_size: int


def traced_with(file: Path) -> Traced | None:
    """What a traced TorchScript file was traced with; None when it keeps no inputs (a scripted one), or other than tensors."""
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if name.endswith("/traced_inputs.pkl")]
        if not names:
            return None
        with archive.open(names[0]) as stream:
            try:
                found = _ShapeReader(stream).load()
            except (pickle.UnpicklingError, EOFError, AttributeError, IndexError, TypeError, ValueError):
                return None
    tensors = found.get("forward") if isinstance(found, dict) else None
    if not isinstance(tensors, list | tuple) or not tensors:
        return None
    specs = [_spec_of(tensor) for tensor in tensors]
    known = tuple(spec for spec in specs if spec is not None)
    return Traced(known, tensors[0].shape[0]) if len(known) == len(specs) else None


def broken(file: Path, why: str) -> ModelError:
    """The error for a file that was cut short or damaged."""
    return ModelError(
        f"{file} is not complete: {why}.",
        title="a damaged file",
        remedy="Copy or save it again; a size that differs from the original's shows a copy that stopped early.",
    )


def state_dict(file: Path) -> ModelError:
    """The error for a file of weights named as a model."""
    return ModelError(
        f"{file} holds weights (a state dict) without the model's code, so nothing can be called.",
        title="weights are not a model",
        remedy=f"Name the class or function that builds the model, and the file as its weights: model.py:Net --weights {file}.",
    )


def untrusted(file: Path) -> ModelError:
    """The error for a pickled module without --trust."""
    return ModelError(
        f"{file} is a pickled module: loading it can run any code that was put into the file.",
        title="a file that runs code",
        remedy="If you trust where it came from, add --trust; else name the code and the weights: model.py:Net --weights FILE.",
    )


def _zip_content(file: Path) -> Holds:
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        inside = {name.partition("/")[2] for name in names}
        if "constants.pkl" in inside and any(name.startswith("code/") for name in inside):
            return "script"
        if "archive_format" in inside or any(name.startswith("models/") for name in inside):
            return "export"
        if "data.pkl" not in inside:
            raise ModelError(f"{file} is a zip file without a model in it.", title="not a torch file")
        pickled = next(name for name in names if name.partition("/")[2] == "data.pkl")
        with archive.open(pickled) as stream:
            return _pickled(stream, 1, file)


def _legacy_content(file: Path) -> Holds:
    with file.open("rb") as stream:
        return _pickled(stream, _LEGACY_PICKLES, file)


def _pickled(stream: Any, count: int, file: Path) -> Holds:
    only_plain = True
    try:
        for _ in range(count):
            for opcode, argument, _ in pickletools.genops(stream):
                if opcode.name in ("GLOBAL", "INST"):
                    only_plain = only_plain and bool(_PLAIN.match(str(argument)))
                elif opcode.name in ("STACK_GLOBAL", "EXT1", "EXT2", "EXT4"):
                    only_plain = False
    except (ValueError, IndexError, EOFError) as error:
        raise broken(file, "the description of its objects ends early") from error
    return "weights" if only_plain else "pickle"


class _Tensor:
    """Stands in for a tensor in a pickle: only its shape and the name of its storage's type are kept."""

    def __init__(self, storage: str, _offset: int, shape: tuple[int, ...], *_rest: object) -> None:
        self.storage = storage
        self.shape = shape


class _ShapeReader(pickle.Unpickler):
    """Reads a pickle of tensors as their shapes. It knows no class but these two, so nothing in the file can run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Tensor
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if (module, name) == ("torch.jit._pickle", "restore_type_tag"):
            return lambda value, _: value
        if module == "torch" and name.endswith("Storage"):
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is not a tensor")

    def persistent_load(self, pid: Any) -> str:
        return str(pid[1])


_DTYPES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}


def _spec_of(tensor: Any) -> TensorSpec | None:
    if not isinstance(tensor, _Tensor) or not tensor.shape or tensor.storage not in _DTYPES:
        return None
    dtype = _DTYPES[tensor.storage]
    return TensorSpec(tuple(tensor.shape[1:]), dtype, below=2 if dtype.startswith("int") else None)
