"""Texts are validated with the same result as by Arrow's full validation, however many there are."""

import random

import pyarrow as pa
import pytest

from tahoe.schema.text_validity import is_ascii, validate

MANY = 300_000


def is_valid(check, values: pa.Array) -> bool:
    try:
        check(values)
    except pa.ArrowInvalid:
        return False
    return True


def texts(content: bytes, offsets: list[int], offset: int = 0) -> pa.Array:
    """Texts with these bytes and offsets, valid or not."""
    places = pa.array(offsets, pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1 - offset, [None, places, pa.py_buffer(content)], offset=offset)


@pytest.mark.parametrize("count", [0, 1, 300, MANY])
@pytest.mark.parametrize("word", ["word", "Wörter", "\x7f", "\x80", "語", ""])
def test_valid_texts_are_ascii_if_all_their_bytes_are(count, word):
    values = pa.array(["a", None, word, "b"] * (count // 4 + 1)).slice(1, count)
    validate(values)
    assert is_ascii(values) == (count >= 256 and word.isascii())


@pytest.mark.parametrize("count", [300, MANY])
def test_bytes_outside_a_slice_do_not_count(count):
    values = pa.array(["ä", *["word"] * count, "\N{SNOWMAN}"])
    assert not is_ascii(values)
    assert is_ascii(values.slice(1, count))


@pytest.mark.parametrize("count", [10, 300, MANY])
@pytest.mark.parametrize("bad", [b"\xff", b"\x80", b"\xc3", b"\xed\xa0\x80"])
def test_text_that_is_not_utf_8_is_not_valid(count, bad):
    words = [b"word"] * count
    words[count // 2] = bad
    values = pa.array(words, pa.binary()).view(pa.string())
    assert not is_ascii(values)
    assert not is_valid(validate, values)


def test_a_character_divided_between_two_texts_is_not_valid():
    word = "ä".encode()
    assert not is_valid(validate, texts(word * 300, list(range(601))))


@pytest.mark.parametrize("count", [300, MANY])
@pytest.mark.parametrize("offset", [0, 7])
@pytest.mark.parametrize("place", [1, 150, -2])
@pytest.mark.parametrize("number", [-1, 10**9])
def test_offsets_out_of_order_or_outside_the_bytes_are_not_valid(count, offset, place, number):
    offsets = list(range(0, 2 * count + 1, 2))
    offsets[place if place != 1 else offset + 1] = number
    assert not is_valid(validate, texts(b"ab" * count, offsets, offset))


def test_the_first_offset_is_checked():
    assert not is_valid(validate, texts(b"ab" * 300, [600, *range(2, 601, 2)]))


def test_random_bytes_are_valid_where_arrow_finds_them_valid():
    chance = random.Random(5)
    for _ in range(300):
        alphabet = chance.choice([b"abc", b"ab\xc3\xa4", b"\x00\x7f\x80", "日本".encode()])
        lengths = [chance.choice([0, 0, 1, 2, 3, 6]) for _ in range(chance.choice([3, 256, 400]))]
        content = bytes(chance.choice(alphabet) for _ in range(sum(lengths)))
        ends = [sum(lengths[:number]) for number in range(len(lengths) + 1)]
        if chance.random() < 0.3:  # `from_buffers` itself checks the first and the last
            ends[chance.randrange(2, len(ends) - 1)] += chance.choice([-1, 1, 7])
        values = texts(content, ends, chance.choice([0, 1]))
        assert is_valid(validate, values) == is_valid(lambda array: array.validate(full=True), values)


@pytest.mark.parametrize("values", [pa.arange(0, MANY), pa.array([["ä"], None] * 200), pa.nulls(400, pa.string())])
def test_other_values_are_validated_too(values):
    validate(values)
    assert is_ascii(values) == pa.types.is_string(values.type)
