"""Models of the user's own Python code, loaded from real files as they are at home."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch

import engine
from engine import models
from engine.errors import UsageError
from engine.models import own_names
from engine.models.source import LoadedModel, take
from engine.plan import Plan

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=4, depth: int = 1):
        super().__init__()
        self.body = nn.Conv2d(3, width, 3)
        self.head = nn.Linear(width, 2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.head(self.body(x).mean((2, 3))))

def build(width, name="net"):
    return Net(width)

ready = Net()
table = {"weight": torch.zeros(1)}
number = 3

def nothing():
    pass

def weights():
    return Net().state_dict()
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(NET)
    yield
    own_names.leave()


def write(name: str, code: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(dedent(code))


def load(model: str, **options: Any) -> LoadedModel:
    return models.load(Plan(model=model, **options))


def outputs(loaded: LoadedModel, batch_size: int) -> Any:
    with torch.inference_mode():
        return loaded.call(loaded.make_inputs(batch_size))


def refusal(model: str, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        load(model, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "arguments", "parameters"),
    [
        ("Net", {}, 4 * 27 + 4 + 10),
        ("Net", {"width": "3"}, 3 * 27 + 3 + 8),
        ("build", {"width": "3", "name": "mine"}, 3 * 27 + 3 + 8),
        ("ready", {}, 4 * 27 + 4 + 10),
    ],
)
def test_a_class_a_function_and_a_finished_model_are_measured(
    name: str, arguments: dict[str, str], parameters: int
) -> None:
    loaded = load(f"net.py:{name}", model_args=arguments, input="3x8x8")
    assert outputs(loaded, 5).shape == (5, 2)
    assert (loaded.parameters, loaded.unit, loaded.input) == (parameters, "images/s", "3x8x8 float32")
    assert loaded.input_mb_per_item == pytest.approx(3 * 8 * 8 * 4 / 1e6)


def test_dropout_is_off() -> None:
    loaded = load("net.py:Net", input="3x8x8")
    assert torch.equal(outputs(loaded, 3), outputs(loaded, 3))


def test_a_module_on_the_path_is_measured() -> None:
    assert outputs(load("net:Net", input="3x8x8"), 2).shape == (2, 2)


def test_a_single_tensor_goes_straight_to_the_module() -> None:
    loaded = load("net.py:Net", input="3x8x8")
    assert loaded.call is loaded.module


def test_a_larger_batch_begins_with_the_images_of_a_smaller_one() -> None:
    loaded = load("net.py:Net", input="3x8x8")
    many = loaded.make_inputs(200)
    assert many.shape == (200, 3, 8, 8)
    assert torch.equal(take(many, 0, 7), loaded.make_inputs(7))


def test_weights_of_a_file_are_put_in() -> None:
    state = load("net.py:Net", input="3x8x8").module
    assert state is not None
    torch.save(
        {"epoch": 3, "state_dict": {name: value * 0 for name, value in state.state_dict().items()}}, "w.pt"
    )
    assert outputs(load("net.py:Net", input="3x8x8", weights="w.pt"), 2).abs().sum() == 0


def test_weights_that_do_not_fit_are_explained() -> None:
    torch.save({"other": torch.zeros(1)}, "w.pt")
    said = refusal("net.py:Net", input="3x8x8", weights="w.pt")
    assert "4 are missing (first: body.weight) and 1 are unknown to it (first: other)" in said
    torch.save({"body.weight": torch.zeros(1)}, "w.pt")
    assert "size mismatch for body.weight" in refusal("net.py:Net", input="3x8x8", weights="w.pt")
    Path("w.safetensors").write_bytes(b"no")
    assert "cannot be read as a state dict" in refusal("net.py:Net", input="3x8x8", weights="w.safetensors")


@pytest.mark.parametrize(
    ("model", "options", "says"),
    [
        (
            "net.py:build",
            {},
            "build(width, name='net'): missing a required argument: 'width'. Add --model-arg width=VALUE.",
        ),
        (
            "net.py:Net",
            {"model_args": {"wide": "3"}},
            "Net(width=4, depth=1): got an unexpected keyword argument 'wide'",
        ),
        ("net.py:Net", {"model_args": {"width": "wide"}}, "net.py:8"),
        (
            "net.py:ready",
            {"model_args": {"width": "3"}},
            "is a model already, so it takes no arguments (width)",
        ),
        ("net.py:table", {}, "is a dict of weights"),
        ("net.py:weights", {}, "returned is a dict of weights"),
        ("net.py:number", {}, "net.py:number is an int, not an nn.Module"),
        ("net.py:nothing", {}, "net.py:nothing() returned None, not an nn.Module"),
        ("net:gone", {}, "net has no gone. It has: Net, build, ready"),
        ("net.py:Net", {"input": "3x8x8,3x8x8"}, "forward(x), and the input is 3x8x8 float32, 3x8x8 float32"),
        ("net.py:Net", {"input": "y:3x8x8"}, "missing a required argument: 'x'"),
    ],
)
def test_what_does_not_fit_is_said_with_the_signature(model: str, options: dict[str, Any], says: str) -> None:
    assert says in refusal(model, **{"input": "3x8x8", **options})


def test_unknown_inputs_are_asked_for_and_not_guessed() -> None:
    said = refusal("net.py:Net")
    assert "it is called as forward(x)." in said
    assert "--input 3x224x224, or put a function batchpeak_inputs(batch_size) into the file" in said
    write(
        "tokens.py",
        """
        from torch import nn
        class Encoder(nn.Module):
            def forward(self, input_ids, attention_mask, scale=1.0): return input_ids
        """,
    )
    assert "--input input_ids:128:int64:30522,attention_mask:128:int64" in refusal("tokens.py:Encoder")


def test_a_token_model_with_a_mask_counts_items() -> None:
    write(
        "tokens.py",
        """
        from torch import nn
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(50, 8)
            def forward(self, ids, mask):
                return {"pooled": (self.table(ids) * mask.unsqueeze(-1)).mean(1)}
        """,
    )
    loaded = load("tokens.py:Encoder", input="ids:16:int64:50,mask:16:int64")
    assert outputs(loaded, 3)["pooled"].shape == (3, 8)
    assert (loaded.unit, loaded.input) == ("items/s", "ids 16 int64 below 50, mask 16 int64 below 2")
    assert 2 < int(loaded.make_inputs(64)["ids"].max()) < 50


@pytest.mark.parametrize(
    ("code", "described"),
    [
        ("torch.ones(n, 3, 8, 8)", "3x8x8 float32"),
        ("(torch.ones(n, 3, 8, 8),)", "3x8x8 float32"),
        ("{'x': torch.ones(n, 3, 8, 8)}", "3x8x8 float32"),
        ("__import__('numpy').ones((n, 3, 8, 8), 'float32')", "3x8x8 float32"),
    ],
)
def test_a_function_of_the_users_makes_the_inputs(code: str, described: str) -> None:
    write("own.py", NET + f"\ndef batchpeak_inputs(n):\n    return {code}\n")
    loaded = load("own.py:Net")
    assert outputs(loaded, 5).shape == (5, 2)
    assert (loaded.input, loaded.unit) == (described, "images/s")


def test_an_option_on_the_command_line_wins_over_the_function() -> None:
    write("own.py", NET + "\ndef batchpeak_inputs(n):\n    return torch.ones(n, 3, 8, 8)\n")
    assert load("own.py:Net", input="3x9x9").input == "3x9x9 float32"


def test_a_function_for_one_batch_size_fails_at_the_others_only() -> None:
    write(
        "own.py",
        NET
        + dedent("""
        def batchpeak_inputs(n):
            assert n == 8, "8 only"
            return (torch.ones(n, 3, 8, 8),)
        """),
    )
    loaded = load("own.py:Net")
    assert outputs(loaded, 8).shape == (8, 2)
    with pytest.raises(AssertionError, match="8 only"):
        loaded.make_inputs(1)


@pytest.mark.parametrize(
    ("code", "says"),
    [("None", "returned None without any tensor"), ("[]", "returned a list without any tensor")],
)
def test_a_function_that_makes_no_tensors_is_refused(code: str, says: str) -> None:
    write("own.py", NET + f"\ndef batchpeak_inputs(n):\n    return {code}\n")
    assert says in refusal("own.py:Net")


def test_a_function_that_makes_another_number_of_items_is_found_out() -> None:
    write("own.py", NET + "\ndef batchpeak_inputs(n):\n    return torch.ones(8, 3, 8, 8)\n")
    loaded = load("own.py:Net")
    assert outputs(loaded, 8).shape == (8, 2)
    assert loaded.input_mb_per_item == pytest.approx(3 * 8 * 8 * 4 / 1e6)
    with pytest.raises(ValueError, match=r"batchpeak_inputs\(4\) returned 8 items, not 4"):
        loaded.make_inputs(4)


def test_an_example_that_the_module_carries_tells_the_input() -> None:
    write("lit.py", NET + "\nready.example_input_array = torch.zeros(2, 3, 9, 9)\n")
    assert load("lit.py:ready").input == "3x9x9 float32"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("raise ValueError('[/red] no [1, 3')", "raised ValueError: [/red] no [1, 3 at bad.py:3"),
        ("import sys; sys.exit(3)", "called sys.exit(3) at bad.py:3"),
        ("import not_there_at_all", "needs the module not_there_at_all, which is not found at bad.py:3"),
        ("import broken", "broken.py:1: "),
    ],
)
def test_code_that_fails_while_imported_is_named_with_its_line(line: str, says: str) -> None:
    write("broken.py", "def broken(:\n")
    write("bad.py", f"\nfrom net import Net\n{line}\n")
    assert says in refusal("bad.py:Net", input="3x8x8")


def test_code_that_fails_while_built_is_named_with_its_line() -> None:
    write(
        "bad.py", NET.partition("ready =")[0].replace("self.drop = nn.Dropout(0.5)", "raise KeyError('drop')")
    )
    assert "bad.py:Net, while it was built, raised KeyError: 'drop' at bad.py:10" in refusal(
        "bad.py:Net", input="3x8x8"
    )


def test_an_edited_file_is_read_again() -> None:
    first = load("net.py:Net", input="3x8x8").parameters
    write("net.py", NET.replace("width=4", "width=40"))
    assert load("net.py:Net", input="3x8x8").parameters != first


def test_arguments_of_the_command_line_do_not_reach_the_users_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["worker", "--unknown"])
    write("parses.py", NET + "\nimport argparse\nargparse.ArgumentParser().parse_args()\n")
    assert outputs(load("parses.py:Net", input="3x8x8"), 1).shape == (1, 2)
    own_names.leave()
    assert sys.argv == ["worker", "--unknown"]


def test_relative_imports_of_a_package_work_from_its_file() -> None:
    write("pkg/__init__.py", "")
    write("pkg/parts.py", NET)
    write("pkg/model.py", "from .parts import Net\n")
    assert outputs(load("pkg/model.py:Net", input="3x8x8"), 2).shape == (2, 2)


def test_modules_beside_the_file_are_found_from_elsewhere() -> None:
    write("deep/models/parts.py", NET)
    write("deep/models/model.py", "from parts import Net\n")
    assert outputs(load("deep/models/model.py:Net", input="3x8x8"), 2).shape == (2, 2)


@pytest.mark.parametrize("form", ["engine.py", "engine/__init__.py"])
def test_a_projects_own_engine_and_utils_load_as_at_home(form: str) -> None:
    write(form, NET + "\nORIGIN = 'theirs'\n")
    write("utils.py", "SIDE = 8\n")
    write("tui.py", "NAME = 'their tui'\n")
    write(
        "model.py",
        """
        import engine
        import tui
        import utils
        from engine import Net as Base

        class Net(Base):
            origin = engine.ORIGIN
            side = utils.SIDE
            name = tui.NAME

            def forward(self, x):
                import engine  # imported late, while it is measured
                assert engine.ORIGIN == "theirs"
                return super().forward(x)
        """,
    )
    loaded = load("model.py:Net", input="3x8x8")
    assert outputs(loaded, 2).shape == (2, 2)
    module: Any = loaded.module
    assert (module.origin, module.side, module.name) == ("theirs", 8, "their tui")
    own_names.leave()
    assert sys.modules["engine"] is engine
    assert "utils" not in sys.modules
    assert load("fashion-cnn").name == "fashion-cnn"


def test_a_file_called_engine_is_the_model_itself() -> None:
    write("engine.py", NET)
    assert outputs(load("engine.py:Net", input="3x8x8"), 2).shape == (2, 2)


def test_without_an_engine_of_the_users_a_late_import_of_ours_finds_the_same_module() -> None:
    load("net.py:Net", input="3x8x8")
    from engine.plan import Plan as Late

    assert Late is Plan


def test_a_late_edit_of_the_path_by_the_user_finds_their_package() -> None:
    write("src/engine/__init__.py", "ORIGIN = 'src'\n")
    write("src/engine/layers.py", NET)
    write(
        "model.py",
        """
        import sys
        sys.path.append("src")
        from engine.layers import Net
        """,
    )
    assert outputs(load("model.py:Net", input="3x8x8"), 2).shape == (2, 2)
    own_names.leave()
    assert "src" not in sys.path


def test_a_default_dtype_set_by_the_user_does_not_change_the_inputs() -> None:
    write("wide.py", "import torch\ntorch.set_default_dtype(torch.float64)\n" + NET)
    try:
        assert load("wide.py:Net", input="3x8x8").make_inputs(1).dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_lazy_layers_have_no_count_yet() -> None:
    write("lazy.py", "from torch import nn\ndef build():\n    return nn.LazyLinear(3)\n")
    loaded = load("lazy.py:build", input="8")
    assert loaded.parameters is None
    assert outputs(loaded, 2).shape == (2, 3)


def test_an_odd_name_of_a_file_is_no_obstacle() -> None:
    write("[/red] my-net.v2.py", NET)
    loaded = load("[/red] my-net.v2.py:Net", input="3x8x8")
    assert loaded.name == "red] my-net.v2.py:Net"
    assert outputs(loaded, 2).shape == (2, 2)


def test_what_the_users_code_set_for_the_process_is_gone_for_the_next_model(tmp_path: Path) -> None:
    write(
        "odd.py",
        "import os, torch\ntorch.set_default_device('meta')\ntorch.set_default_dtype(torch.float64)\n"
        "os.mkdir('elsewhere')\nos.chdir('elsewhere')\nclass Net(torch.nn.Flatten): pass\n",
    )
    assert load("odd.py:Net", input="3x8x8").make_inputs(70).device.type == "cpu"
    own_names.leave()
    assert Path.cwd() == tmp_path
    module = load("net.py:Net", input="3x8x8").module
    assert module is not None
    assert {(value.device.type, value.dtype) for value in module.parameters()} == {("cpu", torch.float32)}


def test_a_model_without_values_is_refused() -> None:
    write("empty.py", "import torch\ndef build():\n    return torch.nn.Linear(4, 2, device='meta')\n")
    assert "has parameters without values" in refusal("empty.py:build", input="4")


def test_a_folder_that_only_has_the_name_of_ours_changes_nothing() -> None:
    write("engine/resnet.plan", "compiled")
    load("net.py:Net", input="3x8x8")
    import engine as late

    assert late is engine


def test_modules_that_the_user_added_to_the_path_are_read_again() -> None:
    write("src/parts.py", NET)
    write("model.py", "import sys\nsys.path.insert(0, 'src')\nfrom parts import Net\n")
    first = load("model.py:Net", input="3x8x8").parameters
    write("src/parts.py", NET.replace("width=4", "width=40"))
    assert load("model.py:Net", input="3x8x8").parameters != first


def test_memory_that_runs_out_while_inputs_are_made_stays_an_out_of_memory() -> None:
    write(
        "own.py",
        NET
        + dedent("""
        def batchpeak_inputs(n):
            if n > 8:
                raise torch.OutOfMemoryError("no room")
            return torch.ones(n, 3, 8, 8)
        """),
    )
    with pytest.raises(torch.OutOfMemoryError):
        load("own.py:Net").make_inputs(9)


def test_weights_saved_from_a_wrapped_model_are_put_in() -> None:
    state = load("net.py:Net", input="3x8x8").module
    assert state is not None
    torch.save({f"module.{name}": value * 0 for name, value in state.state_dict().items()}, "w.pt")
    assert outputs(load("net.py:Net", input="3x8x8", weights="w.pt"), 2).abs().sum() == 0


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda: Path("w.pt").write_bytes(b""), "w.pt is not complete: it is empty"),
        (lambda: Path("w.pt").write_text("a page of a web server"), "was not written by torch"),
        (lambda: torch.save(torch.nn.Linear(1, 1), "w.pt"), "save the state dict alone"),
        (
            lambda: torch.jit.save(torch.jit.script(torch.nn.ReLU()), "w.pt"),
            "is a model itself (TorchScript)",
        ),
        (lambda: torch.save({"epoch": 3}, "w.pt"), "w.pt holds no state dict"),
        (lambda: Path("w.pt").mkdir(), "w.pt is a folder, not a file"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_file_that_is_no_state_dict_is_told_as_what_it_is(write: Callable[[], object], says: str) -> None:
    write()
    assert says in refusal("net.py:Net", input="3x8x8", weights="w.pt")


def test_a_module_without_a_forward_is_refused() -> None:
    Path("part.py").write_text("import torch\nlayers = torch.nn.ModuleList([torch.nn.ReLU()])\n")
    assert "part.py:layers is a ModuleList without a forward" in refusal("part.py:layers", input="8")


def test_inputs_taken_by_keyword_only_are_shown_with_their_names() -> None:
    Path("kw.py").write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, *, image): return image\n"
    )
    assert "For example --input image:3x224x224" in refusal("kw.py:Net", input="3x8x8")


def test_a_part_of_a_package_that_is_not_there_is_named() -> None:
    Path("pack").mkdir()
    Path("pack/__init__.py").write_text("")
    said = refusal("pack.nope:Net", input="8")
    assert said.endswith("pack.nope: pack has no module nope.")


def test_a_librarys_own_words_about_a_part_of_it_give_way_to_the_first_error() -> None:
    Path("lib.py").write_text(
        "try:\n    raise RuntimeError('operator torchvision::nms does not exist')\n"
        "except RuntimeError as error:\n    raise ModuleNotFoundError('Could not import X') from error\n"
        "class Net: pass\n"
    )
    said = refusal("lib.py:Net", input="8")
    assert "raised RuntimeError: operator torchvision::nms does not exist" in said
    assert "pip install --upgrade torch torchvision" in said
