"""What an exception is told as: out of memory or an error, in its own words, with the place in the user's code."""

from __future__ import annotations

import errno
import gc
import importlib.util
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from engine import wire
from engine.worker.failures import LONGEST_ERROR, classify, forget, plain, where


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 1 GiB"),
        RuntimeError("MPS backend out of memory (MPS allocated: 17.5 GB, other allocations: 1 GB)"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: can't allocate memory: you tried"
        ),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("Unable to find a valid cuDNN algorithm to run convolution"),
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_out_of_memory_is_known_in_all_its_words(error: BaseException) -> None:
    failure = classify(error)
    assert (failure.kind, failure.title) == ("oom", "out of memory")
    assert failure.message


def test_a_shape_error_is_an_error_in_its_own_words() -> None:
    failure = classify(RuntimeError("mat1 and mat2 shapes cannot be multiplied (1x3 and 4x5)"))
    assert failure.kind == "error"
    assert failure.title == "RuntimeError"
    assert failure.message == "mat1 and mat2 shapes cannot be multiplied (1x3 and 4x5)"


def test_memory_that_ran_out_below_another_error_is_still_out_of_memory() -> None:
    error = ValueError("the block failed")
    error.__cause__ = torch.OutOfMemoryError("CUDA out of memory.")
    assert classify(error).kind == "oom"


def test_advice_of_torch_about_its_settings_is_left_out() -> None:
    text = "CUDA out of memory. Tried 2 GiB. If reserved but unallocated memory is large try setting X"
    assert classify(torch.OutOfMemoryError(text)).message == "CUDA out of memory. Tried 2 GiB."


@pytest.fixture
def users(tmp_path: Path) -> Callable[[str], ModuleType]:
    def module(source: str) -> ModuleType:
        path = tmp_path / "users.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("users", path)
        assert spec
        assert spec.loader
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    return module


def test_the_place_is_the_deepest_line_of_the_users_file_not_torchs(
    users: Callable[[str], ModuleType],
) -> None:
    module = users(
        "import torch\ndef outer():\n    return inner()\ndef inner():\n    return torch.nn.Linear(3, 4)(torch.ones(1, 5))\n"
    )
    with pytest.raises(RuntimeError) as caught:
        module.outer()
    assert classify(caught.value).where == f"{module.__file__}:5"


def test_a_syntax_error_is_placed_where_the_file_has_it(users: Callable[[str], ModuleType]) -> None:
    with pytest.raises(SyntaxError) as caught:
        users("x = 1\ndef broken(:\n")
    assert classify(caught.value).where.endswith("users.py:2")


def test_an_error_without_a_place_in_user_code_names_none() -> None:
    assert classify(ValueError("made here, never raised")).where == ""


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SystemExit(3), "sys.exit(3)"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (KeyError("pixel_values"), "'pixel_values'"),
        (ValueError(), "without a message"),
        (UnspeakableError(), "ValueError"),
    ],
)
def test_errors_with_few_words_are_told_in_a_sentence(error: BaseException, words: str) -> None:
    failure = classify(error)
    assert failure.kind == "error"
    assert words in failure.message


def test_a_long_message_keeps_its_begin_and_its_end() -> None:
    message = classify(ValueError("begin" + "-" * 5000 + "end")).message
    assert len(message) <= LONGEST_ERROR
    assert message.startswith("begin")
    assert message.endswith("end")


def test_any_text_of_the_users_code_can_be_sent() -> None:
    class Odd(str):
        __slots__ = ()

    failure = classify(ValueError("a file named \udcff [/red]"))
    sent = wire.decode_reply(wire.encode(wire.FailedReply(failure, remedy=plain(Odd("x")))))
    assert isinstance(sent, wire.FailedReply)
    assert "[/red]" in sent.failure.message


def test_a_hint_follows_the_errors_words() -> None:
    assert (
        classify(ValueError("wrong size."), hint="The file takes 8.").message
        == "wrong size. The file takes 8."
    )


def test_the_batch_of_a_failed_call_is_gone_even_while_the_error_is_kept() -> None:
    def failing(batch: torch.Tensor) -> None:
        inner = batch + 1
        watched.append(weakref.ref(inner))
        raise RuntimeError("CUDA out of memory")

    watched: list[weakref.ref[torch.Tensor]] = []
    kept: list[BaseException] = []
    try:
        failing(torch.ones(4))
    except RuntimeError as error:
        kept.append(error)
        assert watched[0]() is not None
        forget(error)
    gc.collect()
    assert watched[0]() is None


SCRIPTED = """The following operation failed in the TorchScript interpreter.
Traceback of TorchScript, serialized code (most recent call last):
  File "code/__torch__/net.py", line 10, in forward
    input = torch.reshape(x, [32, 8])
            ~~~~~~~~~~~~~ <--- HERE
RuntimeError: shape '[32, 8]' is invalid for input of size 64
"""


def test_of_torchscript_only_its_last_words_are_told() -> None:
    failure = classify(RuntimeError(SCRIPTED), hint="It was traced with 32.")
    assert failure.message == "shape '[32, 8]' is invalid for input of size 64. It was traced with 32."


def test_memory_that_ran_out_in_torchscript_is_out_of_memory() -> None:
    text = (
        SCRIPTED.rpartition("RuntimeError")[0]
        + "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB."
    )
    failure = classify(RuntimeError(text))
    assert (failure.kind, failure.message) == ("oom", "CUDA out of memory. Tried to allocate 2.00 GiB.")


@pytest.mark.parametrize(
    ("text", "given", "only"),
    [
        ("shape '[8, 8]' is invalid for input of size 256", 32, 8),
        ("shape '[8, -1, 8]' is invalid for input of size 8", 1, 8),
        ("The size of tensor a (4) must match the size of tensor b (16) at non-singleton dimension 0", 4, 16),
        ("shape '[-1, 7]' is invalid for input of size 64", 8, None),
        ("shape '[32, 7]' is invalid for input of size 256", 32, None),
        (
            "The size of tensor a (4) must match the size of tensor b (16) at non-singleton dimension 0",
            2,
            None,
        ),
        ("mat1 and mat2 shapes cannot be multiplied (8x784 and 100x10)", 8, None),
    ],
)
def test_a_model_that_asks_for_another_number_of_items_is_recognised(
    text: str, given: int, only: int | None
) -> None:
    failure = classify(RuntimeError(text), batch_size=given)
    assert failure.of_size == (only is not None)
    assert failure.message == (
        text if only is None else f"{text}. The model may take batches of {only} only."
    )


def test_a_line_of_an_installed_package_is_left_out_where_only_the_users_own_counts() -> None:
    with pytest.raises(ValueError, match="nonsense") as caught:
        pytest.importorskip("packaging.version").Version("nonsense")
    caught.value.__traceback__ = caught.tb.tb_next  # without the line of this test, which is the user's own
    assert "packaging" in where(caught.value)
    assert where(caught.value, in_packages=False) == ""
