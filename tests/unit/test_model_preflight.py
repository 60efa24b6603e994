"""What is refused before any process is started, in one sentence, without torch and without running the user's code."""

from __future__ import annotations

import importlib.util
import io
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from engine.errors import UsageError
from engine.models import check
from engine.plan import Plan

CODE = """
import sys
sys.exit("ran")
class Net: pass
def build(width): pass
if True:
    from os import path as Late
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(CODE)


def refusal(model: str = "fashion-cnn", **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        check(Plan(model=model, **options))
    return str(caught.value)


def torch_zip(name: str, entries: dict[str, bytes]) -> None:
    with zipfile.ZipFile(name, "w") as archive:
        for entry, content in entries.items():
            archive.writestr(f"archive/{entry}", content)


@pytest.mark.parametrize("name", ["Net", "build", "Late", "sys"])
def test_a_name_in_the_file_passes_without_running_it(name: str) -> None:
    check(Plan(model=f"net.py:{name}"))


def test_the_built_in_model_passes() -> None:
    check(Plan())


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("nt.py:Net", "nt.py does not exist. Did you mean net.py?"),
        ("net.py:Nett", "net.py has no Nett. Did you mean net.py:Net?"),
        ("net.py:zzz", "net.py has no zzz. It has: Net, build."),
        ("no_such_module_here:Net", "no module no_such_module_here"),
        ("gone.pt", "gone.pt does not exist"),
    ],
)
def test_what_is_not_there_is_named(model: str, says: str) -> None:
    assert says in refusal(model)


def test_a_module_in_this_folder_is_found() -> None:
    check(Plan(model="net:Net"))


def test_names_made_while_running_are_left_to_the_run() -> None:
    Path("star.py").write_text("from net import *\n")
    check(Plan(model="star.py:Anything"))


def test_the_line_that_is_not_python_is_shown() -> None:
    Path("bad.py").write_text("import torch\nclass Net(:\n    pass\n")
    said = refusal("bad.py:Net")
    assert "bad.py:2" in said
    assert "class Net(:" in said


def test_a_folder_is_no_file() -> None:
    Path("dir.pt").mkdir()
    assert "hf:dir.pt" in refusal("dir.pt")


def test_an_empty_file_is_damaged() -> None:
    Path("m.pt").write_bytes(b"")
    assert "it is empty" in refusal("m.pt")


def test_a_truncated_file_is_damaged() -> None:
    torch_zip("m.pt", {"data.pkl": b"", "code/x.py": b"", "constants.pkl": b""})
    Path("m.pt").write_bytes(Path("m.pt").read_bytes()[:60])
    assert "m.pt is not complete" in refusal("m.pt")


def test_a_file_of_something_else_is_no_torch_file() -> None:
    Path("m.pt").write_text("a page of a web server")
    assert "was not written by torch" in refusal("m.pt")
    Path("m.pt").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "is a pointer of Git LFS, not the file itself. Fetch it: git lfs pull" in refusal("m.pt")


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (print, ("ran",))


def test_a_pickled_object_needs_trust_and_is_not_run_to_find_out(capsys: pytest.CaptureFixture[str]) -> None:
    torch_zip("m.pt", {"data.pkl": pickle.dumps(Evil(), protocol=2)})
    assert "add --trust" in refusal("m.pt")
    check(Plan(model="m.pt", trust=True))
    assert capsys.readouterr().out == ""


def test_plain_values_are_weights_even_with_trust() -> None:
    torch_zip("m.pt", {"data.pkl": pickle.dumps({"epoch": 3}, protocol=2)})
    assert "holds weights" in refusal("m.pt", trust=True)
    assert "model.py:Net --weights m.pt" in refusal("m.pt")


def test_a_pickle_that_ends_early_is_damaged() -> None:
    torch_zip("m.pt", {"data.pkl": pickle.dumps({"epoch": list(range(99))}, protocol=2)[:40]})
    assert "m.pt is not complete" in refusal("m.pt")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"model_args": {"width": "4"}}, "--model-arg: fashion-cnn is a finished model"),
        ({"weights": "w.pt"}, "--weights: fashion-cnn has its weights already"),
        ({"input": "3x8x8"}, "takes its own images"),
        ({"image_dir": "gone"}, "gone does not exist"),
    ],
)
def test_options_that_the_built_in_model_cannot_take_are_refused(options: dict[str, Any], says: str) -> None:
    assert says in refusal(**options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"weights": "gone.pt"}, "gone.pt does not exist"),
        ({"weights": "cached"}, "'cached' is for torchvision"),
        ({"input": "three"}, "'three' is not a shape"),
    ],
)
def test_options_of_python_models_are_checked(options: dict[str, Any], says: str) -> None:
    assert says in refusal("net.py:Net", **options)


def test_torchscript_is_not_compiled() -> None:
    torch_zip("m.pt", {"data.pkl": b"", "code/x.py": b"", "constants.pkl": b""})
    check(Plan(model="m.pt"))
    assert "--compile" in refusal("m.pt", compile="default") or "compile" in refusal(
        "m.pt", compile="default"
    )


def test_an_exported_program_keeps_its_dtype() -> None:
    torch_zip("m.pt2", {"archive_format": b"pt2", "models/model.json": b""})
    check(Plan(model="m.pt2", dtype="bfloat16", autocast=True))
    assert "export the model again" in refusal("m.pt2", dtype="bfloat16").lower()


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="the onnx extra is not installed")
@pytest.mark.parametrize(
    "options", [{"dtype": "bfloat16"}, {"compile": "default"}, {"channels_last": True}, {"device": "cuda:0"}]
)
def test_options_of_torch_are_refused_for_onnx(options: dict[str, Any]) -> None:
    Path("m.onnx").write_bytes(b"x")
    assert "ONNX" in refusal("m.onnx", **options)


@pytest.mark.parametrize(
    ("model", "package", "extra"),
    [
        ("m.onnx", "onnxruntime", "onnx"),
        ("torchvision:resnet18", "torchvision", "torchvision"),
        ("timm:resnet18", "timm", "timm"),
        ("hf:some/vit", "transformers", "hf"),
    ],
)
def test_a_missing_extra_is_one_sentence_with_its_command(
    model: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("m.onnx").write_bytes(b"x")
    monkeypatch.setitem(
        sys.modules, package, None
    )  # Python's own way to say that a module cannot be imported
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == package else real(name, *rest)
    )
    said = refusal(model)
    assert f"{package} is missing" in said
    assert f"pip install 'batchpeak[{extra}]'" in said


def test_the_parent_process_checks_without_torch() -> None:
    script = (
        "import sys, engine.models.catalogue; from engine.models import check; from engine.plan import Plan; "
        "check(Plan(model='net.py:Net', input='3x8x8')); "
        "print(sorted({'torch', 'numpy', 'torchvision', 'timm', 'net'} & set(sys.modules)))"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": root}
    )
    assert done.stdout.strip() == "[]"


def test_legacy_files_of_torch_are_told_apart() -> None:
    stream = io.BytesIO()
    for value in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, {"weight": [1.0]}):
        pickle.dump(value, stream, protocol=2)
    Path("m.pth").write_bytes(stream.getvalue())
    assert "holds weights" in refusal("m.pth")
