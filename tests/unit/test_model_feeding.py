"""Inputs of any batch size: random ones of a shape, and real images of a folder as the model wants them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import models
from engine.errors import UsageError
from engine.models.feeding import feed
from engine.models.images import ImageLook, check_folder
from engine.models.inputs import parse_input
from engine.models.source import calling, each_tensor, megabytes, take
from engine.plan import Plan


def test_the_seed_decides_the_values() -> None:
    specs = parse_input("3x4x4")
    first, again, other = (feed(specs, Plan(seed=seed)).make_inputs(5) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 300])
def test_every_batch_size_is_filled_and_contiguous(size: int) -> None:
    batch = feed(parse_input("3x4x4"), Plan()).make_inputs(size)
    assert batch.shape == (size, 3, 4, 4)
    assert batch.is_contiguous()


def test_batches_do_not_share_memory_with_each_other() -> None:
    fed = feed(parse_input("4"), Plan())
    first = fed.make_inputs(2)
    first.zero_()
    assert fed.make_inputs(2).abs().sum() > 0


@pytest.mark.parametrize(
    ("text", "dtype", "low", "high"),
    [
        ("64:int64:10", torch.int64, 0, 9),
        ("64:int64", torch.int64, 0, 1),
        ("64:int8:1000", torch.int8, 0, 127),
        ("3x32x32:uint8", torch.uint8, 0, 255),
        ("64:bool", torch.bool, 0, 1),
    ],
)
def test_integers_stay_in_their_range(text: str, dtype: torch.dtype, low: int, high: int) -> None:
    batch = feed(parse_input(text), Plan()).make_inputs(64)
    assert batch.dtype == dtype
    assert low <= int(batch.min()) <= int(batch.max()) <= high
    assert int(batch.max()) > high // 2


def test_half_precision_inputs_are_made_as_asked() -> None:
    assert feed(parse_input("4:bfloat16"), Plan()).make_inputs(2).dtype == torch.bfloat16


def test_several_inputs_come_by_position_or_by_name() -> None:
    by_position = feed(parse_input("4,5"), Plan()).make_inputs(3)
    assert [tuple(part.shape) for part in by_position] == [(3, 4), (3, 5)]
    by_name = feed(parse_input("a:4,b:5"), Plan()).make_inputs(3)
    assert {name: tuple(part.shape) for name, part in by_name.items()} == {"a": (3, 4), "b": (3, 5)}


def test_inputs_of_every_form_are_called_sliced_and_weighed() -> None:
    tensor = torch.arange(6.0).reshape(3, 2)
    forms: list[Any] = [tensor, (tensor, tensor), {"a": tensor, "b": None}]
    for form in forms:
        part = take(form, 1, 2)
        got = calling(lambda *args, **kwargs: (args, kwargs), part)(part)
        assert got == (
            part if isinstance(part, tuple) else () if isinstance(part, dict) else (part,),
            part if isinstance(part, dict) else {},
        )
        assert megabytes(form) == pytest.approx(48e-6 if isinstance(form, tuple) else 24e-6)
    assert each_tensor(lambda value: value.shape, forms[2]) == {"a": (3, 2), "b": None}


def test_the_built_in_model_is_fed_with_its_images() -> None:
    loaded = models.load(Plan())
    batch = loaded.make_inputs(3)
    assert (loaded.input, loaded.unit, loaded.parameters) == ("1x28x28 float32", "images/s", 229_610)
    with torch.inference_mode():
        assert loaded.call(batch).shape == (3, 10)
    assert 0 <= float(batch.min()) < float(batch.max()) <= 1


@pytest.fixture
def folder(tmp_path: Path) -> str:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for place, colour in (("b/red.png", (255, 0, 0)), ("a/green.PNG", (0, 255, 0))):
        (tmp_path / place).parent.mkdir()
        image.new("RGB", (40, 20), colour).save(tmp_path / place)
    (tmp_path / "notes.txt").write_text("no image")
    return str(tmp_path)


def test_images_of_a_folder_are_fed_in_the_order_of_their_names(folder: str) -> None:
    fed = feed(parse_input("3x8x8"), Plan(image_dir=folder))
    batch = fed.make_inputs(3)
    assert batch.mean((2, 3)).tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
    assert (fed.input, fed.unit) == ("3x8x8 float32 from a folder", "images/s")


def test_images_are_normalised_as_the_model_says(folder: str) -> None:
    look = ImageLook(mean=(0.5, 0.5, 0.5), std=(0.5, 0.25, 0.5))
    batch = feed(parse_input("3x8x8"), Plan(image_dir=folder), look).make_inputs(1)
    assert batch.mean((2, 3)).tolist() == [[-1, 2, -1]]


def test_the_centre_of_an_image_is_kept_and_bytes_stay_bytes(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    wide = image.new("RGB", (60, 20), (255, 0, 0))
    wide.paste((0, 0, 255), (20, 0, 40, 20))
    wide.save(tmp_path / "wide.png")
    batch = feed(parse_input("3x10x10:uint8"), Plan(image_dir=str(tmp_path))).make_inputs(2)
    assert batch.dtype == torch.uint8
    assert batch[:, 2, 1:-1, 1:-1].min() == 255
    assert batch[:, 0, 1:-1, 1:-1].max() == 0


def test_the_built_in_model_takes_images_of_a_folder_in_grey(folder: str) -> None:
    loaded = models.load(Plan(image_dir=folder))
    batch = loaded.make_inputs(2)
    assert batch.shape == (2, 1, 28, 28)
    assert batch.mean((1, 2, 3)).tolist() == pytest.approx([150 / 255, 76 / 255])


def test_a_model_that_takes_no_image_refuses_a_folder(folder: str) -> None:
    with pytest.raises(UsageError, match="which is not one image"):
        feed(parse_input("a:16:int64,b:4"), Plan(image_dir=folder))


def test_a_file_that_is_no_image_is_named(folder: str) -> None:
    (Path(folder) / "a" / "bad.jpg").write_bytes(b"not a jpeg")
    with pytest.raises(UsageError, match=r"bad\.jpg cannot be read as an image"):
        feed(parse_input("3x8x8"), Plan(image_dir=folder))


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(UsageError, match="has no image files"):
        check_folder(str(tmp_path))
    with pytest.raises(UsageError, match="is a file, not a folder"):
        check_folder(str(tmp_path / "notes.txt"))


def test_without_pillow_one_sentence_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "PIL" else real(name, *rest)
    )
    with pytest.raises(UsageError, match=r"pip install 'batchpeak\[images\]'"):
        check_folder(str(tmp_path))
