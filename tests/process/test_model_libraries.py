"""Models of torchvision, timm and transformers, built by the real libraries where they are installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import models
from engine.errors import UsageError
from engine.models import catalogue
from engine.models.source import LoadedModel
from engine.plan import Plan

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def torchvision() -> Iterator[Any]:
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("the torchvision extra is not installed")
    # A torchvision whose compiled operators were built for another torch does not load them, and its import then fails on
    # the two that it registers fake versions of. Defined by hand, they let the models be built; none of these calls them.
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    try:
        import torchvision as package
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"torchvision does not import beside this torch: {error}")
    yield package
    del library


@pytest.fixture
def timm(torchvision: Any) -> None:
    if importlib.util.find_spec("timm") is None:
        pytest.skip("the timm extra is not installed")


@pytest.fixture
def transformers() -> Any:
    return pytest.importorskip("transformers", reason="the hf extra is not installed")


def load(model: str, **options: Any) -> LoadedModel:
    return models.load(Plan(model=model, **options))


def outputs(loaded: LoadedModel, batch_size: int) -> Any:
    with torch.inference_mode():
        return loaded.call(loaded.make_inputs(batch_size))


def refusal(model: str, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        load(model, **options)
    return str(caught.value)


def test_a_torchvision_model_is_fed_as_its_preprocessing_says(torchvision: Any) -> None:
    loaded = load("torchvision:squeezenet1_1", model_args={"num_classes": "7"})
    assert outputs(loaded, 2).shape == (2, 7)
    assert (loaded.input, loaded.unit) == ("3x224x224 float32", "images/s")
    assert (loaded.name, loaded.description) == ("torchvision:squeezenet1_1", "torchvision, random weights")


def test_random_weights_are_the_same_for_a_seed(torchvision: Any) -> None:
    first, again, other = (
        load("torchvision:squeezenet1_1", input="3x32x32", seed=seed).module for seed in (1, 1, 2)
    )
    assert first is not None
    assert again is not None
    assert other is not None
    values = [next(module.parameters()) for module in (first, again, other)]
    assert torch.equal(values[0], values[1])
    assert not torch.equal(values[0], values[2])


def test_weights_of_a_file_are_put_into_a_torchvision_model(torchvision: Any, tmp_path: Path) -> None:
    module = load("torchvision:squeezenet1_1", input="3x32x32").module
    assert module is not None
    torch.save({name: value * 0 for name, value in module.state_dict().items()}, tmp_path / "w.pt")
    loaded = load("torchvision:squeezenet1_1", input="3x32x32", weights=str(tmp_path / "w.pt"))
    assert outputs(loaded, 1).abs().sum() == 0
    assert loaded.description == "torchvision, weights of w.pt"


def test_weights_that_are_not_cached_are_not_downloaded(
    torchvision: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    said = refusal("torchvision:squeezenet1_1", weights="cached")
    assert "are not on this machine" in said
    assert "batchpeak downloads nothing" in said


def test_cached_weights_of_torchvision_are_used(
    torchvision: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    weights = torchvision.models.SqueezeNet1_1_Weights.DEFAULT
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    module = load("torchvision:squeezenet1_1", input="3x32x32").module
    assert module is not None
    file = tmp_path / "hub" / "checkpoints" / weights.url.rpartition("/")[2]
    torch.save({name: value * 0 for name, value in module.state_dict().items()}, file)
    # Its name ends in a digest of the published content, which a file of the test cannot have.
    monkeypatch.setattr(type(weights), "get_state_dict", lambda self, **rest: torch.load(file))
    loaded = load("torchvision:squeezenet1_1", input="3x32x32", weights="cached")
    assert outputs(loaded, 1).abs().sum() == 0
    assert loaded.description == "torchvision, pretrained weights"


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("squeezenet", {}, "torchvision has no model squeezenet. Did you mean torchvision:squeezenet1_1"),
        ("ssdlite320_mobilenet_v3_large", {}, "takes a list of images"),
        ("r3d_18", {}, "it is called as forward(x)"),
        ("squeezenet1_1", {"model_args": {"depth": "3"}}, "unexpected keyword argument 'depth'"),
    ],
)
def test_torchvision_models_that_do_not_fit_are_explained(
    torchvision: Any, name: str, options: dict[str, Any], says: str
) -> None:
    assert says in refusal(f"torchvision:{name}", **options)


def test_a_timm_model_is_fed_as_its_configuration_says(timm: None) -> None:
    loaded = load("timm:lcnet_035", model_args={"num_classes": "7"})
    assert outputs(loaded, 2).shape == (2, 7)
    assert (loaded.input, loaded.unit) == ("3x224x224 float32", "images/s")
    assert loaded.description == "timm, random weights"


def test_an_unknown_timm_model_is_told_with_near_names(timm: None) -> None:
    assert "Did you mean timm:lcnet_035" in refusal("timm:lcnet_036")


def test_pretrained_weights_of_timm_are_not_downloaded(
    timm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert "batchpeak downloads nothing" in refusal("timm:lcnet_050", weights="cached")


def test_a_users_module_built_with_timm_tells_its_input(
    timm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("import timm\ndef build():\n    return timm.create_model('lcnet_035')\n")
    assert load("mine.py:build").input == "3x224x224 float32"


def save_vit(transformers: Any, folder: Path, *, weights: bool) -> None:
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=32,
        patch_size=8,
        num_labels=7,
        architectures=["ViTForImageClassification"],
    )
    if weights:
        transformers.ViTForImageClassification(config).save_pretrained(folder)
    else:
        config.save_pretrained(folder)


@pytest.mark.parametrize(("weights", "said"), [(False, "random weights"), (True, "its own weights")])
def test_a_transformers_folder_is_measured(
    transformers: Any, tmp_path: Path, weights: bool, said: str
) -> None:
    save_vit(transformers, tmp_path / "vit", weights=weights)
    loaded = load(f"hf:{tmp_path / 'vit'}")
    assert outputs(loaded, 3).logits.shape == (3, 7)
    assert (loaded.name, loaded.unit) == ("hf:vit", "images/s")
    assert loaded.input == "pixel_values 3x32x32 float32"
    assert loaded.description == f"transformers ViTForImageClassification, {said}"


def test_the_size_is_read_from_the_preprocessing_where_the_model_has_none(
    transformers: Any, tmp_path: Path
) -> None:
    transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1]).save_pretrained(tmp_path)
    assert "does not tell the shape of its inputs" in refusal(f"hf:{tmp_path}")
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"size": {"shortest_edge": 40}}))
    assert load(f"hf:{tmp_path}").input == "pixel_values 3x40x40 float32"


def test_a_token_model_asks_for_its_length(transformers: Any, tmp_path: Path) -> None:
    transformers.BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=50
    ).save_pretrained(tmp_path)
    assert "--input input_ids:128:int64:30522" in refusal(f"hf:{tmp_path}")
    loaded = load(f"hf:{tmp_path}", input="input_ids:16:int64:50,attention_mask:16:int64")
    assert outputs(loaded, 3)["last_hidden_state"].shape == (3, 16, 16)
    assert loaded.unit == "items/s"


@pytest.mark.parametrize(
    ("name", "says"),
    [("nobody/no-such-model", "hf download nobody/no-such-model"), ("./gone", "./gone is not a folder")],
)
def test_a_transformers_model_that_is_not_here_is_not_downloaded(
    transformers: Any, name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert says in refusal(f"hf:{name}")


def test_a_folder_without_a_configuration_is_explained(transformers: Any, tmp_path: Path) -> None:
    assert "must hold a config.json" in refusal(f"hf:{tmp_path}")


def test_names_of_timm_are_listed_by_a_child_process(timm: None, tmp_path: Path) -> None:
    define = (
        "import torch; library = torch.library.Library('torchvision', 'DEF'); "
        "[library.define(n + '(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')"
        " for n in ('nms', 'qnms') if not hasattr(torch.ops.torchvision, n)]; "
    )

    def ask(command: Sequence[str]) -> str:
        child = [*command[:-1], define + command[-1]]
        return subprocess.run(child, capture_output=True, text=True, check=True).stdout

    found = catalogue.search("timm:lcnet_03", ask=ask, cache=tmp_path)
    assert [entry.spec for entry in found.entries] == ["timm:lcnet_035"]
