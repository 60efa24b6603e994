"""The built-in model: what ships is whole, accurate and can be trained again."""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from engine.errors import UsageError
from engine.models import fashion_cnn
from engine.models.fashion_cnn.idx import LabelledImages, read_split
from engine.models.fashion_cnn.network import parameter_count
from engine.models.fashion_cnn.train import augment, main, shuffled_batches, train


def write_idx(path: Path, values: np.ndarray) -> None:
    header = bytes((0, 0, 8, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape)
    path.write_bytes(gzip.compress(header + values.tobytes()))


def striped_images(count: int, seed: int) -> LabelledImages:
    """Images whose class is the place of a bright stripe, on a noisy ground."""
    noise = np.random.default_rng(seed)
    labels = np.arange(count, dtype=np.uint8) % 10
    images = noise.integers(0, 60, (count, 28, 28), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 * label + 4] = 250
    return LabelledImages(images, labels)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """On a busy machine two threads wait for each other many times longer than these small sums take."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def small_data_set(tmp_path: Path) -> Path:
    for split, count in (("train", 40), ("t10k", 20)):
        data = striped_images(count, seed=count)
        write_idx(tmp_path / f"{split}-images-idx3-ubyte.gz", data.images)
        write_idx(tmp_path / f"{split}-labels-idx1-ubyte.gz", data.labels)
    return tmp_path


def test_the_shipped_model_is_small_and_of_the_size_it_says() -> None:
    assert parameter_count(fashion_cnn.load()) == fashion_cnn.PARAMETERS <= 250_000


def test_the_shipped_model_comes_ready_for_inference() -> None:
    assert not any(module.training for module in fashion_cnn.load().modules())


def test_the_shipped_weights_classify_the_shipped_images() -> None:
    labels = torch.from_numpy(fashion_cnn.sample_labels())
    with torch.inference_mode():
        logits = fashion_cnn.load()(fashion_cnn.sample_batch(len(labels)))
    accuracy = (logits.argmax(1) == labels).float().mean().item()
    assert accuracy >= 0.91


def test_the_stated_accuracy_is_the_one_that_training_recorded() -> None:
    package = resources.files(fashion_cnn)
    record = json.loads(package.joinpath("training.json").read_text(encoding="utf-8"))
    assert record["test_images"] == 10_000
    assert record["test_correct"] / record["test_images"] == fashion_cnn.TEST_ACCURACY >= 0.91
    assert record["parameters"] == fashion_cnn.PARAMETERS
    card = package.joinpath("MODEL_CARD.md").read_text(encoding="utf-8")
    assert f"{fashion_cnn.TEST_ACCURACY:.2%}".replace("%", " %") in card


def test_the_sample_holds_real_images_of_every_class() -> None:
    images, labels = fashion_cnn.sample_images(), fashion_cnn.sample_labels()
    assert images.shape == (1024, 28, 28)
    assert labels.shape == (1024,)
    assert images.dtype == labels.dtype == np.uint8
    assert len(fashion_cnn.CLASSES) == 10
    assert set(labels.tolist()) == set(range(10))
    assert len({image.tobytes() for image in images}) == 1024


@pytest.mark.parametrize("batch_size", [1, 7, 1024, 2500])
def test_a_batch_of_any_size_is_filled_with_sample_images_in_order(batch_size: int) -> None:
    batch = fashion_cnn.sample_batch(batch_size)
    assert batch.shape == (batch_size, *fashion_cnn.INPUT_SHAPE)
    assert batch.dtype == torch.float32
    last = fashion_cnn.sample_images()[(batch_size - 1) % 1024]
    assert np.array_equal((batch[-1, 0] * 255).round().numpy(), last)


def test_sample_pixels_are_between_0_and_1() -> None:
    batch = fashion_cnn.sample_batch(64)
    assert (batch.min().item(), batch.max().item()) == (0.0, 1.0)


@pytest.mark.parametrize("batch_size", [0, -3])
def test_an_empty_batch_is_refused(batch_size: int) -> None:
    with pytest.raises(ValueError, match=f"not {batch_size}"):
        fashion_cnn.sample_batch(batch_size)


def test_naming_the_model_costs_no_torch_import() -> None:
    program = "import sys, engine.models.fashion_cnn as m; print(m.NAME, 'torch' in sys.modules, 'numpy' in sys.modules)"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["fashion-cnn", "False", "False"]


def test_the_training_command_writes_weights_sample_and_record(small_data_set: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "engine.models.fashion_cnn.train", "--data", str(small_data_set)]
    command += ["--epochs", "1", "--threads", "1", "--out", str(out)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    record = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert (record["epochs"], record["threads"], record["training_images"]) == (1, 1, 40)
    assert f"({record['test_correct']} of 20)" in outcome.stdout
    assert load_file(out / "weights.safetensors").keys() == fashion_cnn.load().state_dict().keys()
    with np.load(out / "sample.npz", allow_pickle=False) as sample:
        assert np.array_equal(sample["images"], read_split(small_data_set, "t10k").images)
        assert np.array_equal(sample["labels"], np.arange(20) % 10)


def test_training_again_with_the_same_seed_gives_the_same_weights() -> None:
    data = striped_images(40, seed=1)

    def weights(seed: int) -> dict[str, torch.Tensor]:
        return train(data, epochs=2, seed=seed, report=lambda _: None).state_dict()

    first, again, other = weights(5), weights(5), weights(6)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["classifier.1.weight"], other["classifier.1.weight"])


def test_training_learns_what_tells_the_classes_apart() -> None:
    losses: list[float] = []
    train(
        striped_images(40, seed=2),
        epochs=8,
        seed=0,
        report=lambda line: losses.append(float(line.rsplit(" ", 1)[1])),
    )
    assert losses[-1] < 0.7 * losses[0]


def test_augmentation_moves_an_image_by_one_pixel_at_most() -> None:
    images = torch.zeros((200, 28, 28), dtype=torch.uint8)
    images[:, 10, 5] = 200
    places = augment(images, torch.Generator().manual_seed(0)).nonzero()
    assert {(row, column) for _, row, column in places.tolist()} == {
        (row, column) for row in (9, 10, 11) for column in (4, 5, 6, 21, 22, 23)
    }


def test_every_image_is_seen_at_most_once_an_epoch() -> None:
    batches = list(shuffled_batches(300, torch.Generator().manual_seed(0)))
    assert [len(batch) for batch in batches] == [128, 128]
    assert len(set(torch.cat(batches).tolist())) == 256


def test_a_missing_data_set_names_the_folder_and_the_package_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert str(tmp_path) in said
    assert "dataset-fashion-mnist" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"not gzip", "cannot be read"),
        (gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", 20) + bytes(20)), "3 dimensions"),
        (gzip.compress(b"\0\0\x0d\x03" + struct.pack(">3I", 1, 28, 28) + bytes(784)), "unsigned bytes"),
        (gzip.compress(b"\0\0\x08\x03" + struct.pack(">3I", 2, 28, 28) + bytes(784)), "784 values"),
        (gzip.compress(b"\0\0\x08\x03"), "3 dimensions"),
        (gzip.compress(b""), "3 dimensions"),
        (gzip.compress(b"\0\0\x08\x03\0\0"), "3 dimensions"),
        (gzip.compress(bytes(4000))[:-12], "cannot be read"),
        (gzip.compress(bytes(4000))[:10] + b"\xff" * 40, "cannot be read"),
    ],
    ids=[
        "not-gzip",
        "labels-as-images",
        "floats",
        "too-few-pixels",
        "header-only",
        "empty",
        "half-a-header",
        "torn",
        "scrambled",
    ],
)
def test_a_broken_image_file_is_refused_by_name(small_data_set: Path, content: bytes, said: str) -> None:
    path = small_data_set / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=said) as refusal:
        read_split(small_data_set, "t10k")
    assert path.name in str(refusal.value)


def test_images_without_their_labels_are_refused(small_data_set: Path) -> None:
    write_idx(small_data_set / "t10k-labels-idx1-ubyte.gz", np.zeros(19, dtype=np.uint8))
    with pytest.raises(UsageError, match="20 images and 19 labels"):
        read_split(small_data_set, "t10k")
