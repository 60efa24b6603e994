"""The names in a Python file that may be a model: found in its text, likeliest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import ModelError
from engine.models.candidates import Candidate, candidates, is_model_file

SOURCE = """
raise SystemExit("this file must not be run")
import torch
from torch import nn
WIDTH = 8
_hidden = nn.Linear(1, 1)
def build(width, depth=2, *, bias): ...
def batchpeak_inputs(batch_size): ...
class Config: ...
class Net(nn.Module):
    def __init__(self, classes, width=8): ...
class Light(pl.LightningModule): ...
net = build(3)
ready: nn.Module = build(4)
"""


def test_classes_of_modules_come_first_then_objects_functions_and_other_classes(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(SOURCE)
    assert candidates(file) == [
        Candidate("Net", "module", ("classes",)),
        Candidate("Light", "module"),
        Candidate("net", "name"),
        Candidate("ready", "name"),
        Candidate("build", "function", ("width", "bias")),
        Candidate("Config", "class"),
    ]


@pytest.mark.parametrize(
    ("source", "said"),
    [(b"def f(:\n", "net.py:1"), (b"\0", "null bytes"), (b"\xff\xfe", "not valid Python")],
)
def test_what_is_not_python_is_told_with_its_place(tmp_path: Path, source: bytes, said: str) -> None:
    file = tmp_path / "net.py"
    file.write_bytes(source)
    with pytest.raises(ModelError) as error:
        candidates(file)
    assert said in str(error.value)


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        candidates(tmp_path / "gone.py")


@pytest.mark.parametrize(
    ("name", "is_model"), [("a.py", True), ("A.ONNX", True), ("a.pt2", True), ("a.txt", False), ("a", False)]
)
def test_model_files_are_known_by_their_ending(name: str, is_model: bool) -> None:
    assert is_model_file(Path(name)) is is_model
