"""--input as a person writes it: one image, tokens with a mask, and what is refused."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.models.inputs import TensorSpec, in_words, parse_input


@pytest.mark.parametrize(
    ("text", "specs", "words"),
    [
        ("3x224x224", (TensorSpec((3, 224, 224)),), "3x224x224 float32"),
        ("128", (TensorSpec((128,)),), "128 float32"),
        ("3x32x32:uint8", (TensorSpec((3, 32, 32), "uint8"),), "3x32x32 uint8"),
        ("16, 4", (TensorSpec((16,)), TensorSpec((4,))), "16 float32, 4 float32"),
        (
            "ids:128:int64:30522,mask:128:int64",
            (TensorSpec((128,), "int64", "ids", 30522), TensorSpec((128,), "int64", "mask", 2)),
            "ids 128 int64 below 30522, mask 128 int64 below 2",
        ),
        ("input.1:3x8x8", (TensorSpec((3, 8, 8), name="input.1"),), "input.1 3x8x8 float32"),
        ("t:():int64:1000", (TensorSpec((), "int64", "t", 1000),), "t () int64 below 1000"),
        ("3x8x8,", (TensorSpec((3, 8, 8)),), "3x8x8 float32"),
    ],
)
def test_an_item_is_described(text: str, specs: tuple[TensorSpec, ...], words: str) -> None:
    assert parse_input(text) == specs
    assert in_words(specs) == words


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "input 1 is ''"),
        (",", "no shape in it"),
        ("3,224,x", "input 3 is 'x'; 'x' is not a shape"),
        ("3x-1x4", "not a shape"),
        ("3x0x4", "whole number from 1"),
        ("99999999999x2", "at most 2^31 values"),
        ("3x8x8:half", "'half' is not one of"),
        ("ids:8:int64:many", "'many' is not a range"),
        ("x:8:float32:5", "'5' is not a range"),
        ("a:8,9", "name all of them, or none"),
        ("a:8,a:9", "the name a is given twice"),
        ("2 b:8", "'2 b' is not a name"),
        ("a:8:int64:5:6", "is not a shape"),
    ],
)
def test_a_bad_item_is_named_with_its_place(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_input(text)
    assert says in str(caught.value)
    assert caught.value.argument == "--input"


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        (TensorSpec((3, 8, 8)), True),
        (TensorSpec((1, 8, 8), "uint8"), True),
        (TensorSpec((64, 8, 8)), False),
        (TensorSpec((3, 8)), False),
        (TensorSpec((3, 8, 8), "int64"), False),
    ],
)
def test_only_images_are_counted_as_images(spec: TensorSpec, image: bool) -> None:
    assert spec.is_image is image
