"""chain_keys with recipe "omlx-1": the published vectors, Python's own text, and what is refused."""

import hashlib
import random

import numpy as np
import pytest

import kvkeep


def keys_of(tokens, block_size, **arguments):
    return kvkeep.chain_keys(tokens, block_size=block_size, recipe="omlx-1", **arguments)


def reference_keys(tokens, block_size, model="", extras=()):
    keys, parent = [], b"omlx-root"
    for index in range(len(tokens) // block_size):
        own = tuple(tokens[index * block_size : (index + 1) * block_size])
        more = tuple((extras[index] or ()) if index < len(extras) else ())
        text = str(own) + (str(more) if more else "")
        parent = hashlib.sha256(model.encode() + parent + text.encode()).digest()
        keys.append(parent)
    return keys


@pytest.mark.proves("RUL-19")
def test_published_vectors_hold():
    keys = keys_of(range(1, 13), 4, model_name="test-model", extras=[None, None, ["img"]])
    assert [key.hex() for key in keys] == [
        "eccd492fb02022cf654b44da617cf8fb3caa40d7ae912bc473a99850f294f768",
        "ee54080dd391db972147df525bb9e7d56d4c7f74383510a2390dda6aca49b42d",
        "7a5267b97ec292291c0939db962d811869022f80aeef480ed5875d7e52ee0f49",
    ]
    assert keys_of([1, 2, 3, 4], 4)[0].hex() == (
        "2feaaca2a94b2a2dee4d7445e77309c19ddacd3b61c00b07a3517825a3661443"
    )
    assert keys_of([5], 1, namespace={"model": "m"})[0].hex() == (
        "1f1a175375835b2f5a562687bdbf8ac2eec61de6857d7498ec4b10a13c9f4ddb"
    )
    assert keys_of([1], 1, model_name="m", extras=[()])[0].hex() == (
        "5e30d96384349321be917a59c5902f7bbbe6ff1395007b6af2fa6b2a8fb3e2a6"
    )
    assert keys_of(range(8), 8, model_name="org/Model-4bit", extras=[["ab" * 32]])[0].hex() == (
        "c941358c4c37a8c7bd447731d6d6a9c8afb55adc41766cb8843119ea0200a1b5"
    )


@pytest.mark.parametrize("block_size", [1, 2, 16, 500])
def test_keys_are_those_of_pythons_own_text(block_size):
    tokens = [i * 2654435761 % 2**32 for i in range(1000)]
    extras = [["it's", 'a "b"', "\\\t\x00é"], None, (-(2**63), 2**63 - 1), [b"\x00'\xff"], ["'\"", b"'\""]]
    keys = keys_of(np.array(tokens, np.uint32), block_size, model_name="org/モデル", extras=extras)
    assert keys == reference_keys(tokens, block_size, "org/モデル", extras)


def test_an_extra_with_any_character_has_pythons_key_or_none():
    """Every character of the first plane and of emoji; a few of the others."""
    points = [*range(0xD800), *range(0xE000, 0x10000), *range(0x1F000, 0x20000), *range(0x10000, 0x110000, 251)]
    served = 0
    for point in points:
        extra = "a" + chr(point)
        try:
            keys = keys_of([1], 1, extras=[[extra]])
        except ValueError:
            continue
        served += 1
        assert keys == reference_keys([1], 1, extras=[[extra]]), f"U+{point:04X}"
    assert served > 40_000


def test_texts_of_ascii_and_latin_always_have_a_key():
    letters = [chr(point) for point in range(0x180)]
    random.Random(7).shuffle(letters)
    for start in range(0, len(letters), 16):
        text = "".join(letters[start : start + 16])
        assert keys_of([1], 1, extras=[[text]]) == reference_keys([1], 1, extras=[[text]])


@pytest.mark.parametrize(
    "arguments, word",
    [
        ({"recipe": "omlx"}, "recipe"),
        ({"adapter": "a"}, "adapter"),
        ({"salt": "s"}, "salt"),
        ({"namespace": {"kv_dtype": "bf16"}}, "kv_dtype"),
        ({"namespace": {"model": "a"}, "model_name": "b"}, "model_name"),
        ({"extras": [["\u200b"]]}, "U+200B"),
    ],
)
def test_what_the_recipe_cannot_say_is_a_value_error(arguments, word):
    with pytest.raises(ValueError) as error:
        kvkeep.chain_keys([1], **{"block_size": 1, "recipe": "omlx-1", **arguments})
    assert word in str(error.value)


def test_a_recipe_is_a_text():
    with pytest.raises(TypeError, match="recipe"):
        kvkeep.chain_keys([1], block_size=1, recipe=None)


def test_the_default_recipe_has_a_name():
    assert kvkeep.chain_keys([1], block_size=1, recipe="kvkeep-1") == kvkeep.chain_keys([1], block_size=1)
