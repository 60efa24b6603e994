"""Trains the built-in model and writes its weights, its sample of test images and its training record.

python -m engine.models.fashion_cnn.train --data DIR [--epochs N] [--seed 0] [--threads 2] [--out DIR]

The test images are looked at once, after the last epoch: nothing is chosen by them.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor
from torch.nn import functional

from engine.errors import UsageError
from engine.models.fashion_cnn.idx import DEBIAN_FOLDER, LabelledImages, read_split
from engine.models.fashion_cnn.network import FashionCNN, parameter_count, to_input

BATCH_SIZE = 128
PEAK_LEARNING_RATE = 3e-3
WEIGHT_DECAY = 0.02
LABEL_SMOOTHING = 0.05
LARGEST_SHIFT = 1
SAMPLE_SIZE = 1024

DEFAULT_EPOCHS = 12
DEFAULT_THREADS = 2


@dataclass(frozen=True)
class TrainingRecord:
    """What was done and what came out: the numbers of the model card. `seconds` is the training alone."""

    epochs: int
    seed: int
    threads: int
    torch_version: str
    training_images: int
    test_images: int
    test_correct: int
    test_accuracy: float
    sample_images: int
    sample_correct: int
    parameters: int
    seconds: float


def augment(images: Tensor, generator: torch.Generator) -> Tensor:
    """`images` (n, 28, 28), half of them mirrored, each moved by up to 1 pixel on both axes.

    The edge that moves in is 0, the background of every Fashion-MNIST image.
    """
    count, height, width = images.shape
    mirrored = torch.rand(count, generator=generator) < 0.5
    images = torch.where(mirrored[:, None, None], images.flip(2), images)
    padded = functional.pad(images, (LARGEST_SHIFT,) * 4)
    windows = padded.unfold(1, height, 1).unfold(2, width, 1)
    down, right = torch.randint(0, 2 * LARGEST_SHIFT + 1, (2, count), generator=generator)
    return windows[torch.arange(count), down, right]


def shuffled_batches(count: int, generator: torch.Generator) -> Iterator[Tensor]:
    """The indices 0..count-1 in a fresh order, in parts of BATCH_SIZE; a last smaller part is left out.

    When `count` is under BATCH_SIZE there is one part with all of it.
    """
    order = torch.randperm(count, generator=generator)
    for start in range(0, max(count - BATCH_SIZE, 0) + 1, BATCH_SIZE):
        yield order[start : start + BATCH_SIZE]


def train(data: LabelledImages, *, epochs: int, seed: int, report: Callable[[str], None]) -> FashionCNN:
    """A network trained on `data`, in eval mode. The same seed, thread count and torch give the same weights."""
    torch.manual_seed(seed)  # initial weights and dropout
    generator = torch.Generator().manual_seed(seed)  # order and augmentation
    images = torch.from_numpy(data.images.copy())
    labels = torch.from_numpy(data.labels.astype(np.int64))
    model = FashionCNN().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    steps_per_epoch = max(len(images) // BATCH_SIZE, 1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=PEAK_LEARNING_RATE, total_steps=epochs * steps_per_epoch, pct_start=0.25
    )
    for epoch in range(1, epochs + 1):
        loss_sum = 0.0
        for indices in shuffled_batches(len(images), generator):
            logits = model(to_input(augment(images[indices], generator)))
            loss = functional.cross_entropy(logits, labels[indices], label_smoothing=LABEL_SMOOTHING)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            loss_sum += loss.item()
        report(f"epoch {epoch} of {epochs}: mean training loss {loss_sum / steps_per_epoch:.4f}")
    return model.eval()


def count_correct(model: FashionCNN, data: LabelledImages) -> int:
    """How many images of `data` the model gives the right class."""
    images = torch.from_numpy(data.images.copy())
    labels = torch.from_numpy(data.labels.astype(np.int64))
    correct = 0
    with torch.inference_mode():
        for start in range(0, len(images), 500):
            logits = model(to_input(images[start : start + 500]))
            correct += int((logits.argmax(1) == labels[start : start + 500]).sum())
    return correct


def write_sample(path: Path, sample: LabelledImages) -> None:
    """Writes `images` and `labels` as plain (never pickled) arrays in one compressed .npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, images=sample.images, labels=sample.labels)
    path.write_bytes(buffer.getvalue())


def run(
    folder: Path,
    out: Path,
    *,
    epochs: int,
    seed: int,
    report: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> TrainingRecord:
    """Trains on the files of `folder`, tests, and writes weights, sample and record into `out`."""
    training, test = read_split(folder, "train"), read_split(folder, "t10k")
    sample = LabelledImages(test.images[:SAMPLE_SIZE], test.labels[:SAMPLE_SIZE])
    start = clock()
    model = train(training, epochs=epochs, seed=seed, report=report)
    seconds = clock() - start
    test_correct = count_correct(model, test)
    record = TrainingRecord(
        epochs=epochs,
        seed=seed,
        threads=torch.get_num_threads(),
        torch_version=torch.__version__,
        training_images=len(training.images),
        test_images=len(test.images),
        test_correct=test_correct,
        test_accuracy=test_correct / len(test.images),
        sample_images=len(sample.images),
        sample_correct=count_correct(model, sample),
        parameters=parameter_count(model),
        seconds=round(seconds, 1),
    )
    out.mkdir(parents=True, exist_ok=True)
    # save_file would make the file readable by its owner only, and an installation would inherit that.
    (out / "weights.safetensors").write_bytes(save(model.state_dict()))
    write_sample(out / "sample.npz", sample)
    (out / "training.json").write_text(json.dumps(asdict(record), indent=2) + "\n", encoding="utf-8")
    return record


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not 1 or more")
    return value


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m engine.models.fashion_cnn.train",
        description="Train the built-in model on Fashion-MNIST; writes weights, sample and training record.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=DEBIAN_FOLDER,
        metavar="DIR",
        help="folder with the four .gz files (default: %(default)s)",
    )
    parser.add_argument("--epochs", type=_positive, default=DEFAULT_EPOCHS, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument(
        "--threads",
        type=_positive,
        default=DEFAULT_THREADS,
        help="a different count sums in a different order, so the weights differ slightly "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent,
        metavar="DIR",
        help="where the files go (default: the package itself)",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; 0 when the files were written, 2 when the images cannot be read."""
    options = _arguments(arguments)
    torch.set_num_threads(options.threads)
    try:
        record = run(
            options.data,
            options.out,
            epochs=options.epochs,
            seed=options.seed,
            report=lambda line: print(line, flush=True),
        )
    except UsageError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(
        f"test accuracy {record.test_accuracy:.2%} ({record.test_correct} of {record.test_images}), "
        f"{record.parameters:,} parameters, trained in {record.seconds:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
