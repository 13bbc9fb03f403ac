"""Cached objects stay within the limit, are counted, and are removed on request."""

from __future__ import annotations

from threading import Barrier, Thread

import pyarrow as pa
import pytest

import tahoe.cache
from tahoe import Table
from tahoe.base.cache import Kept, _Cache
from tahoe.base.exceptions import InvalidRequest


def keep(cache: _Cache, key: str, value: bytes, *, grows: bool = False) -> bytes:
    return cache.keep(("texts", key), lambda: value, len, grows)


def test_a_value_is_made_once_and_counted():
    cache = _Cache()
    assert [keep(cache, "a", b"one"), keep(cache, "a", b"other"), keep(cache, "b", b"more")] == [b"one", b"one", b"more"]
    assert cache.report() == [Kept("texts", 2, 7, hits=1, misses=2)]
    cache.clear()
    assert cache.report() == [Kept("texts", 0, 0, hits=1, misses=2)]
    assert keep(cache, "a", b"anew") == b"anew"


def test_the_least_recently_used_value_is_evicted_first():
    cache = _Cache(limit=8)
    for name in "abc":
        keep(cache, name, b"1234")
        keep(cache, "a", b"")
    assert cache.is_kept(("texts", "a")) and cache.is_kept(("texts", "c")) and not cache.is_kept(("texts", "b"))
    assert keep(cache, "large", b"x" * 100) == b"x" * 100
    assert cache.report()[0].bytes == 100, "the newest stays"
    cache.set_limit(0)
    keep(cache, "next", b"y")
    assert [item.entries for item in cache.report()] == [1]


def test_growing_values_count_with_their_present_size():
    cache, growing = _Cache(limit=10), bytearray()
    cache.keep(("tables", "t"), lambda: growing, len, True)
    keep(cache, "a", b"123")
    growing.extend(b"x" * 50)
    keep(cache, "b", b"123")
    assert not cache.is_kept(("tables", "t")) and cache.is_kept(("texts", "a"))
    for number in range(200):
        cache.keep(("tables", number), bytearray, len, True)
    assert sum(cache.is_kept(("tables", number)) for number in range(200)) == 128


def test_failed_values_are_not_cached_and_threads_get_one_value():
    cache = _Cache()
    with pytest.raises(ZeroDivisionError):
        cache.keep(("texts", "a"), lambda: 1 // 0, len, False)
    barrier, actual = Barrier(4), []

    def make() -> list[int]:
        barrier.wait(120)
        return []

    threads = [Thread(target=lambda: actual.append(cache.keep(("lists", "a"), make, len, False))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(item) for item in actual}) == 1


def test_the_limit_of_the_process(tmp_path):
    before = tahoe.cache.limit()
    try:
        assert tahoe.cache.limit(5000) == 5000 == tahoe.cache.limit()
        with pytest.raises(InvalidRequest, match="0 or more bytes, found -1"):
            tahoe.cache.limit(-1)
    finally:
        tahoe.cache.limit(before)


def test_bytes_in_memory_grow_with_the_snapshot(tmp_path):
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    assert Table(tmp_path).bytes_in_memory() == 0
    table.snapshot().files()
    assert table.bytes_in_memory() > 100
