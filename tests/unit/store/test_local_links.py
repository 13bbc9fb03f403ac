"""Symbolic links of a local disk, of this machine or of another one."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from tahoe.store.local_links import links_among, real_names
from tahoe.store.local_store import LocalLogStore
from tahoe.store.log_store import LogStore, StoreOver, is_remote
from tahoe.store.object_store import open_store


class StoreElsewhere(StoreOver):
    """Calls functions as on another machine: with pickled values."""

    def __init__(self, url: str, disk: LocalLogStore) -> None:
        super().__init__(open_store(url))
        self._disk = disk

    def run(self, function: Any, *arguments: Any) -> Any:
        function, arguments = pickle.loads(pickle.dumps((function, arguments)))
        return function(self._disk, *arguments)


@pytest.fixture(params=["here", "elsewhere"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    (tmp_path / "t" / "real").mkdir(parents=True)
    (tmp_path / "t" / "real" / "a").write_bytes(b"")
    (tmp_path / "t" / "link").symlink_to(tmp_path / "t" / "real")
    (tmp_path / "t" / "out").symlink_to(tmp_path)
    disk = LocalLogStore(tmp_path / "t")
    return disk if request.param == "here" else StoreElsewhere(f"file://{tmp_path}/elsewhere", disk)


def test_links_are_found_where_the_disk_is(store: LogStore) -> None:
    assert links_among(store, ["real", "link", "out", "real/a", "absent"]) == {"link", "out"}


def test_names_are_resolved_to_files_below_the_root(store: LogStore) -> None:
    assert real_names(store, ["link/a", "out/x", "real/a", "b\0"]) == {"real/a"}


def test_object_stores_have_no_links(memory_url: str) -> None:
    store = open_store(memory_url)
    assert not is_remote(store)
    assert links_among(store, ["a"]) == real_names(store, ["a"]) == set()
