"""A file over ranges of an object has the object's content, and requests no bytes that are in memory."""

from __future__ import annotations

import io
import random

import pytest

from tahoe.store.ranged_file import RangedFile

DATA = bytes(range(256)) * 4


def opened(tail: int) -> tuple[RangedFile, list[tuple[int, int]]]:
    asked: list[tuple[int, int]] = []

    def read_range(start: int, stop: int) -> bytes:
        asked.append((start, stop))
        return DATA[start:stop]

    return RangedFile(len(DATA), DATA[len(DATA) - tail :], read_range), asked


@pytest.mark.parametrize("tail", [0, 1, 100, len(DATA)])
def test_it_reads_the_object_from_any_position(tail: int) -> None:
    file, _ = opened(tail)
    chance, truth = random.Random(tail), io.BytesIO(DATA)
    for _ in range(200):
        offset, size = chance.randrange(len(DATA) + 50), chance.choice([-1, 0, 1, 50, 5000])
        assert file.seek(offset) == truth.seek(offset)
        assert file.read(size) == truth.read(size) and (file.tell() == truth.tell() or offset > len(DATA))


def test_each_read_is_one_request_and_none_within_the_tail_or_at_the_end() -> None:
    file, asked = opened(100)
    file.seek(-100, io.SEEK_END)
    assert file.read(60) == DATA[-100:-40] and file.readall() == DATA[-40:] and file.read() == b""
    assert asked == []
    file.seek(10)
    file.seek(5, io.SEEK_CUR)
    buffer = bytearray(20)
    assert file.readinto(buffer) == 20 and bytes(buffer) == DATA[15:35]
    assert asked == [(15, 35)]


def test_it_is_read_only_and_refuses_positions_before_the_beginning() -> None:
    file, _ = opened(10)
    assert file.readable() and file.seekable() and not file.writable()
    with pytest.raises(ValueError, match="before the beginning of the file"):
        file.seek(-1)
