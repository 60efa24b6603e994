"""Models in files: TorchScript, torch.export, pickled modules and ONNX, each written by the test itself."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from engine import models
from engine.errors import UsageError
from engine.models import own_names
from engine.models.source import LoadedModel
from engine.plan import Plan

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).mean((2, 3)))


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x).mean((2, 3))


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 8)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, *, scale: torch.Tensor
    ) -> tuple[torch.Tensor, None]:
        return (self.table(ids) * mask.unsqueeze(-1)).sum(1) * scale, None


PARAMETERS = 4 * 27 + 4 + 10


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    own_names.leave()


def load(model: str, **options: Any) -> LoadedModel:
    return models.load(Plan(model=model, **options))


def outputs(loaded: LoadedModel, batch_size: int) -> Any:
    with torch.inference_mode():
        return loaded.call(loaded.make_inputs(batch_size))


def refusal(model: str, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        load(model, **options)
    return str(caught.value)


def net() -> Net:
    return Net().eval()


def test_a_traced_file_tells_its_input_and_batch_size() -> None:
    torch.jit.save(torch.jit.trace(net(), torch.zeros(2, 3, 8, 8)), "m.pt")
    loaded = load("m.pt")
    assert outputs(loaded, 5).shape == (5, 2)
    assert (loaded.input, loaded.unit, loaded.parameters) == ("3x8x8 float32", "images/s", PARAMETERS)
    assert "traced with batch size 2" in loaded.batch_hint
    assert load("m.pt", input="3x16x16").input == "3x16x16 float32"


def test_a_scripted_file_needs_its_input_named() -> None:
    torch.jit.save(torch.jit.script(net()), "m.ts")
    assert "m.ts does not tell the shape of its inputs; it is called as forward(x)." in refusal("m.ts")
    assert outputs(load("m.ts", input="3x8x8"), 5).shape == (5, 2)


def test_a_frozen_file_is_measured_without_a_count() -> None:
    torch.jit.save(torch.jit.freeze(torch.jit.script(net())), "m.pth")
    loaded = load("m.pth", input="3x8x8")
    assert loaded.parameters is None
    assert outputs(loaded, 2).shape == (2, 2)


def test_a_traced_file_of_one_batch_size_fails_at_others_with_a_hint() -> None:
    class Fixed(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x.reshape(8, 3, 8, 8))

    torch.jit.save(torch.jit.trace(Fixed().eval(), torch.zeros(8, 3, 8, 8)), "m.pt")
    loaded = load("m.pt")
    assert outputs(loaded, 8).shape == (8, 2)
    with pytest.raises(RuntimeError, match="shape"):
        outputs(loaded, 1)
    assert "batch size 8 and may take no other" in loaded.batch_hint


def test_a_script_that_this_torch_cannot_read_is_explained() -> None:
    torch.jit.save(torch.jit.script(net()), "m.pt")
    with zipfile.ZipFile("m.pt") as old, zipfile.ZipFile("newer.pt", "w") as newer:
        for name in old.namelist():
            newer.writestr(name, old.read(name).replace(b"torch.mean", b"torch.mean_of_later"))
    assert "newer.pt is TorchScript that this torch" in refusal("newer.pt", input="3x8x8")


def test_a_state_dict_is_explained() -> None:
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        torch.save(net().state_dict(), "m.pt", **options)
        assert "m.pt holds weights (a state dict) without the model's code" in refusal("m.pt", trust=True)


def test_a_checkpoint_of_training_is_explained() -> None:
    module = net()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    torch.save({"model": module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, "m.pt")
    assert "Name the class or function that builds the model" in refusal("m.pt")


def test_a_pickled_module_is_loaded_when_trusted() -> None:
    Path("their_net.py").write_text(
        "from torch import nn\nclass Theirs(nn.Sequential):\n    pass\n"
        "def build():\n    return Theirs(nn.Flatten(), nn.Linear(12, 2))\n"
    )
    made = load("their_net.py:build", input="3x2x2").module
    torch.save(made, "m.pt")
    torch.save({"model": made, "epoch": 3}, "checkpoint.pt")
    assert "loading it can run any code" in refusal("m.pt", input="3x2x2")
    loaded = load("m.pt", input="3x2x2", trust=True)
    assert outputs(loaded, 5).shape == (5, 2)
    assert loaded.description == "pickled Theirs"
    assert outputs(load("checkpoint.pt", input="3x2x2", trust=True), 2).shape == (2, 2)


def test_a_pickled_module_whose_code_is_gone_is_explained() -> None:
    Path("their_net.py").write_text("from torch import nn\nclass Theirs(nn.Sequential):\n    pass\n")
    torch.save(load("their_net.py:Theirs", input="3x2x2").module, "m.pt")
    own_names.leave()
    Path("their_net.py").unlink()
    assert "needs the module their_net, which is not found" in refusal("m.pt", input="3x2x2", trust=True)


def test_a_truncated_file_is_refused() -> None:
    torch.save(net(), "m.pt")
    whole = Path("m.pt").read_bytes()
    for size in (len(whole) // 2, 3):
        Path("m.pt").write_bytes(whole[:size])
        said = refusal("m.pt", trust=True, input="3x8x8")
        assert "is not complete" in said or "was not written by torch" in said


def export(file: str, batch: int, *, dynamic: Any = None) -> None:
    inputs = (torch.zeros(batch, 3, 8, 8),)
    shapes = {"x": {0: dynamic}} if dynamic else None
    torch.export.save(torch.export.export(net(), inputs, dynamic_shapes=shapes), file)


def test_an_export_of_any_batch_size_tells_its_input() -> None:
    export("m.pt2", 2, dynamic=torch.export.Dim("batch", min=1, max=64))
    loaded = load("m.pt2")
    assert [outputs(loaded, size).shape[0] for size in (1, 3, 64)] == [1, 3, 64]
    assert (loaded.input, loaded.unit, loaded.parameters) == ("3x8x8 float32", "images/s", PARAMETERS)
    assert loaded.description == "torch.export, any batch size"
    assert loaded.batch_hint == "The file was exported for batch sizes 1 to 64."


def test_an_export_of_one_batch_size_fails_at_others_with_a_hint() -> None:
    export("m.pt2", 8)
    loaded = load("m.pt2")
    assert outputs(loaded, 8).shape == (8, 2)
    with pytest.raises(AssertionError):
        outputs(loaded, 4)
    assert "exported for batch size 8 only" in loaded.batch_hint


def test_an_export_with_several_inputs_is_fed_by_name() -> None:
    batch = torch.export.Dim.DYNAMIC
    program = torch.export.export(
        Tokens().eval(),
        (torch.zeros(2, 5, dtype=torch.int64),),
        {"mask": torch.ones(2, 5), "scale": torch.ones(2, 1)},
        dynamic_shapes={"ids": {0: batch}, "mask": {0: batch}, "scale": {0: batch}},
    )
    torch.export.save(program, "m.pt2")
    loaded = load("m.pt2")
    assert outputs(loaded, 7)[0].shape == (7, 8)
    assert (loaded.input, loaded.unit) == (
        "ids 5 int64 below 2, mask 5 float32, scale 1 float32",
        "items/s",
    )
    wider = load("m.pt2", input="5:int64:50,5,1")
    assert outputs(wider, 7)[0].shape == (7, 8)
    assert int(wider.make_inputs(60)[0].max()) > 2
    assert "was exported for ids 5, mask 5, scale 1 per item" in refusal("m.pt2", input="5:int64")


def test_an_export_saved_under_another_name_is_recognised() -> None:
    export("m.pt2", 8)
    Path("m.pt2").rename("m.pt")
    assert outputs(load("m.pt"), 8).shape == (8, 2)


@pytest.fixture
def onnx_file() -> str:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    onnx = pytest.importorskip("onnx", reason="onnx, which writes the test's file, is not installed")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weight = numpy_helper.from_array(torch.ones(192, 2).numpy(), "weight")
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["image"], ["flat"], axis=1),
            helper.make_node("MatMul", ["flat", "weight"], ["scores"]),
        ],
        "net",
        [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["batch", 2])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save_model(model, "m.onnx")
    onnx.save_model(model, "apart.onnx", save_as_external_data=True, location="apart.bin", size_threshold=0)
    graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    onnx.save_model(helper.make_model(graph, opset_imports=model.opset_import, ir_version=9), "four.onnx")
    graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    onnx.save_model(helper.make_model(graph, opset_imports=model.opset_import, ir_version=9), "any.onnx")
    return "m.onnx"


def test_an_onnx_file_tells_its_input_and_runs_on_arrays(onnx_file: str) -> None:
    loaded = load(onnx_file, threads=1)
    (scores,) = loaded.call(loaded.make_inputs(5))
    assert scores.shape == (5, 2)
    assert (loaded.input, loaded.unit, loaded.module) == ("3x8x8 float32", "images/s", None)
    assert loaded.ignored_threads
    assert loaded.batch_hint == ""


def test_an_onnx_file_of_one_batch_size_says_so(onnx_file: str) -> None:
    loaded = load("four.onnx")
    assert loaded.call(loaded.make_inputs(4))[0].shape == (4, 2)
    assert "exported for batch size 4 only" in loaded.batch_hint
    with pytest.raises(Exception, match=r"[Gg]ot invalid dimensions"):
        loaded.call(loaded.make_inputs(3))


def test_an_onnx_file_with_unknown_sides_asks_for_them(onnx_file: str) -> None:
    said = refusal("any.onnx")
    assert "image is 4x3xheightx8, of which not every side is known" in said
    assert "--input image:3x224x8:float32" in said
    assert load("any.onnx", input="image:3x8x8").make_inputs(4)["image"].shape == (4, 3, 8, 8)
    assert "takes image, and --input describes" in refusal("any.onnx", input="other:3x8x8")


def test_missing_external_data_is_named(onnx_file: str) -> None:
    assert load("apart.onnx").call(load("apart.onnx").make_inputs(2))[0].shape == (2, 2)
    Path("apart.bin").unlink()
    said = refusal("apart.onnx")
    assert "keeps its weights in another file, which is missing" in said
    assert "apart.bin" in said


def test_a_truncated_onnx_file_is_refused(onnx_file: str) -> None:
    Path("cut.onnx").write_bytes(Path(onnx_file).read_bytes()[:100])
    assert "cut.onnx is not a complete ONNX file" in refusal("cut.onnx")


def test_sides_that_the_export_leaves_open_are_given_by_the_option() -> None:
    free = torch.export.Dim.DYNAMIC
    program = torch.export.export(
        Pooled().eval(), (torch.zeros(2, 3, 8, 8),), dynamic_shapes=({0: free, 2: free, 3: free},)
    )
    torch.export.save(program, "m.pt2")
    assert "takes inputs of 3xanyxany per item" in refusal("m.pt2")
    loaded = load("m.pt2", input="3x12x9")
    assert outputs(loaded, 4).shape == (4, 4)
    assert loaded.only_batch_size is None


def test_an_input_that_contradicts_the_export_is_refused_at_once() -> None:
    torch.export.save(torch.export.export(net(), (torch.zeros(4, 3, 8, 8),)), "m.pt2")
    assert "m.pt2 was exported for 3x8x8 per item, and --input describes 3x9x8 float32" in refusal(
        "m.pt2", input="3x9x8"
    )
    assert "--input describes 3x8x8 float32, 3 float32" in refusal("m.pt2", input="3x8x8,3")
    assert load("m.pt2", input="3x8x8").only_batch_size == 4
