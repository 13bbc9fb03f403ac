"""A table in a SQL catalog: registered once, then moved by compare-and-swap."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog as TheirCatalog
from sqlalchemy import text

from tahoe.base.exceptions import ForeignWriter
from tahoe.store.object_store import open_store
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.catalogs.configured import adapter_of


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


def shown(theirs: TheirCatalog) -> str:
    return theirs.load_table("sales.orders").metadata.properties["delta-version"]


def test_a_table_is_registered_once_and_then_follows(log, theirs):
    catalog = adapter_of(theirs, "sales.orders")
    assert catalog.load() is None
    assert log.convert(catalogs=[catalog]).catalog_errors == {}
    assert shown(theirs) == "1"
    for number in range(3):
        log.change([f"c{number}"])
        assert log.convert(catalogs=[catalog]).catalog_errors == {}
        assert shown(theirs) == str(log.version)
    assert catalog.load() == f"{log.store.url}/metadata/v4.metadata.json"
    table = theirs.load_table("sales.orders")
    assert len(list(table.scan().plan_files())) == 5
    assert table.current_snapshot().summary["delta-version"] == "4"


def test_a_catalog_that_fell_behind_catches_up_without_new_commits(log, theirs):
    catalog = adapter_of(theirs, "sales.orders")
    log.convert(catalogs=[catalog])
    log.change(["c1"])
    log.convert()
    assert shown(theirs) == "1"
    assert log.convert(catalogs=[catalog]).kind == "none"
    assert shown(theirs) == "2"


def test_a_stale_swap_is_refused(log, theirs):
    catalog = adapter_of(theirs, "sales.orders")
    log.convert(catalogs=[catalog])
    assert not catalog.commit("file:///elsewhere", "file:///evil")
    assert not catalog.commit(None, catalog.load()), "a second registration"
    assert shown(theirs) == "1"


def test_a_commit_through_the_catalog_by_another_writer_is_detected_and_can_be_reverted(log, theirs):
    catalog = adapter_of(theirs, "sales.orders")
    log.convert(catalogs=[catalog])
    theirs.load_table("sales.orders").transaction().set_properties({"mine": "now"}).commit_transaction()
    log.change(["c1"])
    with pytest.raises(ForeignWriter, match=r"catalog prod:sales\.orders points to"):
        log.convert(catalogs=[catalog])
    assert "mine" in theirs.load_table("sales.orders").metadata.properties, "the pointer was left alone"
    assert log.convert(catalogs=[catalog], rebuild=True).catalog_errors == {}
    assert shown(theirs) == "2"


def test_a_failing_database_is_reported_after_the_conversion(log, theirs):
    catalog = adapter_of(theirs, "sales.orders")
    with theirs.engine.begin() as connection:
        connection.execute(text("DROP TABLE iceberg_tables"))
    result = log.convert(catalogs=[catalog])
    assert result.version == 1
    assert result.catalog_errors["prod:sales.orders"].code == "TAHOE_STORAGE_FAILURE"
