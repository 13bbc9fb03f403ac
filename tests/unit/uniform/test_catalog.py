"""Catalogs: pointers move forward only, only from metadata of ours, and readers find the table through them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.catalog.sql import SqlCatalog as TheirCatalog
from pyiceberg.utils.config import Config
from sqlalchemy import text

from tahoe.exceptions import ForeignWriter, InvalidRequest, NotFound, StorageFailure, Unsupported
from tahoe.store.object_store import open_store
from tahoe.uniform.catalogs.catalog import advance
from tahoe.uniform.catalogs.configured import ConfiguredCatalogs, adapted, catalog_names
from tahoe.uniform.catalogs.path_catalog import PathCatalog
from tahoe.uniform.formats.metadata_files import metadata_number
from tests.unit.uniform.deltalog import DeltaLog


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    found = DeltaLog(open_store(tmp_path / "a table"))
    found.change(["a1", "b1"])
    return found


@pytest.fixture
def theirs(tmp_path: Path):
    catalog = TheirCatalog("prod", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    yield catalog
    catalog.engine.dispose()


def shown(theirs: TheirCatalog) -> str:
    return theirs.load_table("sales.orders").metadata.properties["delta-version"]


def test_a_table_is_registered_once_and_then_follows(log, theirs):
    catalog = adapted(theirs, "sales.orders")
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
    catalog = adapted(theirs, "sales.orders")
    log.convert(catalogs=[catalog])
    log.change(["c1"])
    log.convert()
    assert shown(theirs) == "1"
    assert log.convert(catalogs=[catalog]).kind == "none"
    assert shown(theirs) == "2"


def test_the_pointer_never_goes_back(log, theirs):
    catalog = adapted(theirs, "sales.orders")
    log.convert(catalogs=[catalog])
    older = f"{log.store.url}/metadata/v0.metadata.json"
    advance(catalog, older, log.store.url)
    assert metadata_number(catalog.load()) == 1


def test_a_stale_swap_is_refused(log, theirs):
    catalog = adapted(theirs, "sales.orders")
    log.convert(catalogs=[catalog])
    assert not catalog.commit("file:///elsewhere", "file:///evil")
    assert not catalog.commit(None, catalog.load()), "a second registration"
    assert shown(theirs) == "1"


def test_a_commit_through_the_catalog_by_another_writer_is_noticed_and_can_be_taken_back(log, theirs):
    catalog = adapted(theirs, "sales.orders")
    log.convert(catalogs=[catalog])
    theirs.load_table("sales.orders").transaction().set_properties({"mine": "now"}).commit_transaction()
    log.change(["c1"])
    with pytest.raises(ForeignWriter, match=r"catalog prod:sales\.orders points to"):
        log.convert(catalogs=[catalog])
    assert "mine" in theirs.load_table("sales.orders").metadata.properties, "the pointer was left alone"
    assert log.convert(catalogs=[catalog], rebuild=True).catalog_errors == {}
    assert shown(theirs) == "2"


def test_a_name_that_belongs_to_another_table_is_left_alone(log, theirs, tmp_path):
    other = DeltaLog(open_store(tmp_path / "another"))
    other.convert(catalogs=[adapted(theirs, "sales.orders")])
    errors = log.convert(catalogs=[adapted(theirs, "sales.orders")], rebuild=True).catalog_errors
    assert isinstance(errors["prod:sales.orders"], ForeignWriter)
    assert theirs.load_table("sales.orders").location() == other.store.url


def test_a_pointer_that_cannot_be_compared_ends_at_the_newest_metadata_all_the_same(log):
    """Between the look and the move of one conversion, another one puts newer metadata and moves the pointer too."""

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


def test_a_catalog_in_motion_is_tried_again_and_then_given_up():
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


def test_another_kind_of_catalog_is_refused_by_name():
    class Other:
        name = "x"

    with pytest.raises(Unsupported, match="Other"):
        adapted(Other(), "a.b")
    assert issubclass(InMemoryCatalog, TheirCatalog), "PyIceberg's memory catalog is a SQL catalog too"


def test_the_table_s_property_names_catalogs():
    key = "delta.universalFormat.config.iceberg.catalogs"
    assert catalog_names({}) == []
    assert catalog_names({key: "prod:sales.orders, dev:a.b.c"}) == ["prod:sales.orders", "dev:a.b.c"]


@pytest.mark.parametrize("text", ["prod", "prod:orders", ":a.b", "sqlite:///x:a.b c", "a:b:c.d"])
def test_a_property_that_names_no_table_is_refused(text):
    with pytest.raises(InvalidRequest, match="catalogs"):
        catalog_names({"delta.universalformat.config.iceberg.catalogs": text})


def test_a_catalog_is_reached_by_pyiceberg_s_own_configuration(log, tmp_path, monkeypatch):
    monkeypatch.setenv("PYICEBERG_CATALOG__HERE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__HERE__URI", f"sqlite:///{tmp_path}/here.db")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    catalog = ConfiguredCatalogs().named("here:sales.orders")
    log.convert(catalogs=[catalog])
    assert catalog.name == "here:sales.orders"
    assert catalog.load().endswith("/v1.metadata.json")
    catalog._adapted()._catalog.engine.dispose()


def test_a_catalog_that_is_not_configured_is_named_without_its_secrets(monkeypatch):
    with pytest.raises(NotFound, match="nowhere"):
        ConfiguredCatalogs().named("nowhere:a.b").load()
    monkeypatch.setenv("PYICEBERG_CATALOG__ODD__URI", "odd://user:hunter2@host")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    with pytest.raises(NotFound, match="odd") as raised:
        ConfiguredCatalogs().named("odd:a.b").load()
    assert "hunter2" not in str(raised.value)


def test_a_database_that_fails_leaves_the_conversion_done_and_is_told(log, theirs):
    catalog = adapted(theirs, "sales.orders")
    with theirs.engine.begin() as connection:
        connection.execute(text("DROP TABLE iceberg_tables"))
    result = log.convert(catalogs=[catalog])
    assert result.version == 1
    assert result.catalog_errors["prod:sales.orders"].code == "TAHOE_STORAGE_FAILURE"


def test_an_empty_hint_is_written_anew(log):
    log.store.put("metadata/version-hint.text", b"")
    log.convert()
    assert PathCatalog(log.store).load() == f"{log.store.url}/metadata/v1.metadata.json"
