"""Small files that are fetched together."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tahoe.base.exceptions import NotFound
from tahoe.store.files_ahead import with_files_ahead
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import Call, TracingStore


def stored(**contents: bytes) -> TracingStore:
    store = open_store(f"memory://files-ahead-{'-'.join(contents)}")
    for name, content in contents.items():
        store.put(name, content)
    return TracingStore(store)


def test_the_small_neighbours_of_an_opened_file_are_fetched_with_it() -> None:
    store = stored(a=b"aa", b=b"b", c=b"ccc")
    ahead = with_files_ahead(store, [("a", 2), ("b", 1), ("c", 3)])
    assert [ahead.open_input(name).read() for name in "abc"] == [b"aa", b"b", b"ccc"]
    assert store.calls == [Call("get_many", "a")]
    assert ahead.open_input("b").read() == b"b", "a file that is opened again is fetched again"
    assert store.calls[1:] == [Call("open_input", "b")]


def test_large_files_and_files_of_unknown_size_are_opened_by_themselves() -> None:
    store = stored(a=b"a", b=b"b", c=b"c", d=b"d")
    ahead = with_files_ahead(store, [("a", 1), ("b", 2 << 20), ("c", None), ("d", 1)])
    assert [ahead.open_input(name).read() for name in "abcd"] == [b"a", b"b", b"c", b"d"]
    assert store.calls == [Call("get_many", "a"), Call("open_input", "b"), Call("open_input", "c")]


def test_at_most_sixteen_megabytes_and_64_files_are_fetched_at_once() -> None:
    small = stored(**{f"s{n}": b"s" for n in range(70)})
    ahead = with_files_ahead(small, [(f"s{n}", 1) for n in range(70)])
    for n in range(70):
        ahead.open_input(f"s{n}")
    assert small.calls == [Call("get_many", "s0"), Call("get_many", "s64")]
    large = stored(**{f"l{n}": b"l" for n in range(20)})
    ahead = with_files_ahead(large, [(f"l{n}", 1 << 20) for n in range(20)])
    for n in range(20):
        ahead.open_input(f"l{n}")
    assert large.calls == [Call("get_many", "l0"), Call("get_many", "l16")]


def test_a_missing_file_raises_its_own_error_and_the_others_are_read() -> None:
    store = stored(x=b"x", z=b"z")
    ahead = with_files_ahead(store, [("x", 1), ("y", 1), ("z", 1)])
    assert ahead.open_input("x").read() == b"x"
    with pytest.raises(NotFound):
        ahead.open_input("y")
    assert ahead.open_input("z").read() == b"z"


def test_a_local_store_and_a_single_file_need_nothing(tmp_path: Path) -> None:
    local = open_store(tmp_path)
    assert with_files_ahead(local, [("a", 1), ("b", 1)]) is local
    remote = open_store("memory://files-ahead")
    assert with_files_ahead(remote, [("a", 1)]) is remote


def test_every_other_call_and_another_process_use_the_store_itself() -> None:
    store = open_store("memory://files-ahead-other")
    ahead = with_files_ahead(store, [("a", 1), ("b", 1)])
    ahead.put("a", b"new")
    assert (ahead.url, ahead.get("a"), ahead.asks_cheaply) == (store.url, b"new", False)
    assert type(pickle.loads(pickle.dumps(ahead))) is type(store)
