"""Whether two lanes of a race gave the same answers, and what else ran on the machine while a block did."""

from __future__ import annotations

import pytest
import torch

from engine.worker.counters import OtherLoad, Reading
from engine.worker.outputs import agreement, first_tensor

LOGITS = torch.tensor([[1.0, 3.0, 2.0], [9.0, 0.0, 8.0]])


def one_by_one(tensor: torch.Tensor) -> list[torch.Tensor | None]:
    return [tensor[index : index + 1] for index in range(len(tensor))]


def test_the_same_logits_in_other_batches_agree() -> None:
    answer = agreement(one_by_one(LOGITS), [LOGITS + 1e-6])
    assert answer.agree is True
    assert "same classes" in answer.text
    assert answer.largest_difference == pytest.approx(1e-6, rel=0.2)


def test_another_class_for_one_image_is_a_disagreement_that_counts_it() -> None:
    answer = agreement([LOGITS], [torch.tensor([[1.0, 3.0, 2.0], [7.0, 0.0, 8.0]])])
    assert answer.agree is False
    assert "1 of 2" in answer.text


def test_two_classes_within_rounding_of_each_other_are_no_disagreement() -> None:
    tie = torch.tensor([[5.0, 5.0 + 1e-5]])
    assert agreement([tie], [tie.flip(1)]).agree is True


def test_low_precision_is_held_to_its_own_tolerance() -> None:
    other = LOGITS * 1.02
    assert agreement([LOGITS.bfloat16()], [other.bfloat16()]).agree is True
    assert agreement([LOGITS], [other]).agree is False


@pytest.mark.parametrize(
    ("left", "right", "agree"),
    [
        ([None], [None], None),
        ([torch.tensor([[float("nan"), 1.0]])], [torch.tensor([[1.0, 1.0]])], None),
        ([torch.ones(2, 3)], [torch.ones(1, 3)], False),
        ([torch.tensor([1, 2])], [torch.tensor([1, 2])], True),
        ([torch.tensor([1, 2])], [torch.tensor([2, 1])], False),
        ([torch.ones(2, 3, 4)], [torch.ones(2, 3, 4)], True),
        ([torch.ones(1, 3), torch.ones(1, 4)], [torch.ones(2, 3)], None),
    ],
)
def test_outputs_of_every_kind_are_compared_or_said_to_be_beyond_comparing(
    left: list[torch.Tensor | None], right: list[torch.Tensor | None], agree: bool | None
) -> None:
    assert agreement(left, right).agree is agree


def test_a_number_per_batch_is_no_batch_of_items() -> None:
    assert first_tensor(torch.tensor(3.0)) is None
    assert first_tensor((torch.tensor(3.0), [LOGITS])) is LOGITS


def load_of(*blocks: tuple[float, float, float]) -> list[float | None]:
    """Other load after each block of (wall, busy, own) seconds; between the blocks the machine is busy with others."""
    now = [0.0, 0.0, 0.0]

    def read() -> Reading:
        return Reading(*now)

    load, seen = OtherLoad(read), []
    for block in blocks:
        now[:] = [total + idle for total, idle in zip(now, (1.0, 2.0, 0.0), strict=True)]
        load.begin()
        now[:] = [total + more for total, more in zip(now, block, strict=True)]
        seen.append(load.end())
    return seen


def test_other_load_is_what_was_busy_in_the_blocks_and_not_ours() -> None:
    assert load_of((1.0, 3.5, 2.0)) == [pytest.approx(1.5)]
    assert load_of((1.0, 2.0, 2.0)) == [pytest.approx(0.0)]


def test_other_load_of_short_blocks_is_that_of_the_last_second_of_them() -> None:
    seen = load_of(*[(0.125, 0.25, 0.125)] * 5, *[(0.125, 0.125, 0.125)] * 8)
    assert seen[0] is None
    assert seen[4] == pytest.approx(1.0)
    assert seen[-1] == pytest.approx(0.0)


def test_ticks_of_the_kernels_counters_never_give_a_load_below_nothing() -> None:
    assert load_of((0.3, 0.0, 0.3)) == [0.0]
