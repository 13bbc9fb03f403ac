"""Pointers only move forward, and only from Tahoe's own metadata."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog as TheirCatalog

from tahoe.base.exceptions import ForeignWriter, StorageFailure
from tahoe.store.object_store import open_store
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.catalogs.catalog import advance
from tahoe.uniform.catalogs.configured import adapter_of
from tahoe.uniform.catalogs.path_catalog import PathCatalog
from tahoe.uniform.formats.metadata_files import metadata_number


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog(open_store(tmp_path / "a table"))
    log.change(["a1", "b1"])
    return log


@pytest.fixture
def theirs(tmp_path: Path):
    catalog = TheirCatalog("prod", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    yield catalog
    catalog.engine.dispose()


def test_the_pointer_never_goes_back(log, theirs):
    catalog = adapter_of(theirs, "sales.orders")
    log.convert(catalogs=[catalog])
    older = f"{log.store.url}/metadata/v0.metadata.json"
    advance(catalog, older, log.store.url)
    assert metadata_number(catalog.load()) == 1


def test_a_name_that_belongs_to_another_table_is_left_alone(log, theirs, tmp_path):
    other = DeltaLog(open_store(tmp_path / "another"))
    other.convert(catalogs=[adapter_of(theirs, "sales.orders")])
    errors = log.convert(catalogs=[adapter_of(theirs, "sales.orders")], rebuild=True).catalog_errors
    assert isinstance(errors["prod:sales.orders"], ForeignWriter)
    assert theirs.load_table("sales.orders").location() == other.store.url


def test_a_pointer_without_compare_and_swap_still_ends_at_the_newest_metadata(log):
    """Between one conversion's read and move of the pointer, another puts newer metadata and moves the pointer too."""

    class Overwriting:
        name, swaps = "overwriting", False

        def __init__(self):
            self.location, self.moves, self.other = None, [], None

        def load(self):
            return self.location

        def commit(self, old, new):
            if self.other is not None:
                other, self.other = self.other, None
                other()
            self.location = new
            self.moves.append(metadata_number(new))
            return True

    pointer = Overwriting()
    log.convert(catalogs=[pointer])
    log.change(["c1"])

    def newer():
        log.change(["d1"])
        assert log.convert(catalogs=[pointer]).version == 3

    pointer.other = newer
    assert log.convert(version=2, catalogs=[pointer]).version == 2
    assert pointer.moves == [1, 3, 2, 3]
    assert PathCatalog(log.store).load().endswith("/v3.metadata.json")


def test_a_busy_catalog_is_retried_a_limited_number_of_times():
    class Moving:
        name = "moving"
        loads = 0

        def load(self):
            self.loads += 1
            return f"file:///t/metadata/v{self.loads}.metadata.json"

        def commit(self, old, new):
            return False

    moving = Moving()
    with pytest.raises(StorageFailure, match="moving"):
        advance(moving, "file:///t/metadata/v99.metadata.json", "file:///t")
    assert moving.loads == 8
