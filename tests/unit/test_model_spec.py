"""What a person names becomes a typed value, or one sentence that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import ModelError
from engine.models.spec import (
    BuiltIn,
    ModelFile,
    PythonObject,
    Spec,
    ZooModel,
    argument_values,
    did_you_mean,
    parse,
    short_name,
)


@pytest.mark.parametrize(
    ("text", "spec", "name"),
    [
        ("fashion-cnn", BuiltIn(), "fashion-cnn"),
        ("dir/net.py:Net", PythonObject("Net", file=Path("dir/net.py")), "net.py:Net"),
        ("net.py:zoo.Net", PythonObject("zoo.Net", file=Path("net.py")), "net.py:zoo.Net"),
        ("package.module:build", PythonObject("build", module="package.module"), "package.module:build"),
        ("a/b.pt", ModelFile(Path("a/b.pt"), "torch"), "b.pt"),
        ("b.PTH", ModelFile(Path("b.PTH"), "torch"), "b.PTH"),
        ("b.ts", ModelFile(Path("b.ts"), "torch"), "b.ts"),
        ("b.pt2", ModelFile(Path("b.pt2"), "export"), "b.pt2"),
        ("b.onnx", ModelFile(Path("b.onnx"), "onnx"), "b.onnx"),
        ("torchvision:resnet50", ZooModel("torchvision", "resnet50"), "torchvision:resnet50"),
        ("timm:resnet50.a1_in1k", ZooModel("timm", "resnet50.a1_in1k"), "timm:resnet50.a1_in1k"),
        ("hf:google/vit-base", ZooModel("hf", "google/vit-base"), "hf:vit-base"),
        ("[/red] dir/[net].pt", ModelFile(Path("[/red] dir/[net].pt"), "torch"), "[net].pt"),
    ],
)
def test_every_form_is_understood(text: str, spec: Spec, name: str) -> None:
    assert parse(text) == spec
    assert short_name(spec) == name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("  ", "no model was named"),
        ("fashon-cnn", "Did you mean fashion-cnn?"),
        ("resnet50", "torchvision:resnet50 or timm:resnet50"),
        ("net.py", "Expected net.py:NAME"),
        ("net.py:", "not the name of a Python object"),
        ("net.py:Net()", "'Net()' after the colon is not the name"),
        ("my-dir/net:Net", "neither a .py file nor the name of a Python module"),
        ("tim-m:resnet50", "Did you mean timm:resnet50?"),
        ("torchvision:", "needs the model's name after the colon"),
        ("best.safetensors", "model.py:Net --weights best.safetensors"),
        ("./folder", "hf:./folder"),
        ("dir/net.onn", "Files of a model end in .pt, .pth, .ts, .pt2, .onnx"),
    ],
)
def test_what_is_wrong_is_said_with_a_remedy(text: str, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse(text)
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


def test_model_arguments_are_values_where_they_can_be() -> None:
    texts = {"depth": "18", "ratio": "0.5", "pool": "True", "sizes": "(1, 2)", "act": "relu", "none": "None"}
    values = {"depth": 18, "ratio": 0.5, "pool": True, "sizes": (1, 2), "act": "relu", "none": None}
    assert argument_values(texts) == values


def test_near_names_of_a_library_are_offered() -> None:
    assert "Did you mean timm:resnet50?" in did_you_mean("timm", "resnet5o", ["resnet50", "vit_tiny"])
    assert "batchpeak models zzz" in did_you_mean("timm", "zzz", ["resnet50"])
