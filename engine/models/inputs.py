"""What one item of the input looks like, as a person writes it with --input. Pure.

`3x224x224`, `3x224x224:uint8`, `ids:128:int64:30522,mask:128:int64`: [NAME:]SHAPE[:DTYPE[:BELOW]], several separated by commas.
Names make the inputs keyword arguments. Integers are drawn from 0 up to, not including, BELOW (2 unless given).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.errors import UsageError

FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
INTEGERS = frozenset({"uint8", "int8", "int16", "int32", "int64"})
DTYPES = FLOATS | INTEGERS | {"bool"}
SMALLEST_RANGE = 2
"""Without a range, integers are 0 or 1: valid as a mask, and as an index of any table with two rows."""
LARGEST_ITEM = 2**31
"""Values per item; more is a typing mistake."""
EXAMPLES = "3x224x224 or ids:128:int64:30522,mask:128:int64"

_SHAPE = re.compile(r"^(\d+(x\d+)*|\(\))$", re.ASCII)
_NAME = re.compile(r"^[^\W\d][\w./\-]*$")
"""Of ONNX inputs too, which may be called "input.1"."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input without its batch dimension. `name` is the keyword it is passed by, "" for by position."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    name: str = ""
    below: int | None = None
    """Integers are drawn from 0 up to, not including, this."""

    @property
    def is_image(self) -> bool:
        """1, 3 or 4 channels before height and width, float or bytes."""
        return (
            len(self.shape) == 3
            and self.shape[0] in (1, 3, 4)
            and (self.dtype in FLOATS or self.dtype == "uint8")
        )

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "()"
        below = f" below {self.below}" if self.below is not None else ""
        return f"{self.name + ' ' if self.name else ''}{shape} {self.dtype}{below}"


def parse_input(text: str, *, argument: str = "--input") -> tuple[TensorSpec, ...]:
    """The inputs that `text` describes, in its order. Raises UsageError naming the first bad one and its place."""
    specs: list[TensorSpec] = []
    for place, raw in enumerate(text.split(","), start=1):
        item = raw.strip()
        if item or text.count(",") == 0:
            specs.append(_tensor(item, place, argument))
    if not specs:
        raise UsageError("no shape in it.", argument=argument, remedy=f"Expected for example {EXAMPLES}.")
    names = [spec.name for spec in specs if spec.name]
    if names and len(names) != len(specs):
        raise UsageError(
            "some inputs have a name and some have none; name all of them, or none.",
            argument=argument,
            remedy=f"Expected for example {EXAMPLES}.",
        )
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"the name {twice} is given twice.", argument=argument)
    return tuple(specs)


def in_words(specs: tuple[TensorSpec, ...]) -> str:
    """All inputs of one item in words, e.g. "ids 128 int64, mask 128 int64"."""
    return ", ".join(map(str, specs))


def _tensor(item: str, place: int, argument: str) -> TensorSpec:
    parts = [part.strip() for part in item.split(":")]
    name = ""
    if len(parts) > 1 and not _SHAPE.match(parts[0]):
        name, *parts = parts
        if not _NAME.match(name):
            raise _bad(item, place, f"'{name}' is not a name", argument)
    if len(parts) > 3 or not _SHAPE.match(parts[0]):
        raise _bad(item, place, f"'{parts[0]}' is not a shape", argument)
    shape = () if parts[0] == "()" else tuple(int(side[:12]) for side in parts[0].split("x"))
    size = 1
    for side in shape:
        size *= side
    if not 1 <= size <= LARGEST_ITEM:
        raise _bad(
            item, place, "each side is a whole number from 1, and an item at most 2^31 values", argument
        )
    dtype = parts[1] if len(parts) > 1 else "float32"
    if dtype not in DTYPES:
        raise _bad(item, place, f"'{dtype}' is not one of {', '.join(sorted(DTYPES))}", argument)
    return TensorSpec(shape, dtype, name, _below(parts, item, place, argument))


def _below(parts: list[str], item: str, place: int, argument: str) -> int | None:
    if len(parts) < 3:
        return SMALLEST_RANGE if len(parts) > 1 and parts[1] in INTEGERS - {"uint8"} else None
    if parts[1] not in INTEGERS or not re.fullmatch(r"\d{1,15}", parts[2], re.ASCII) or int(parts[2]) < 1:
        raise _bad(item, place, f"'{parts[2]}' is not a range of integers (a whole number from 1)", argument)
    return int(parts[2])


def _bad(item: str, place: int, what: str, argument: str) -> UsageError:
    return UsageError(
        f"input {place} is '{item}'; {what}.",
        argument=argument,
        remedy=f"Expected [NAME:]SHAPE[:DTYPE[:BELOW]], for example {EXAMPLES}.",
    )
