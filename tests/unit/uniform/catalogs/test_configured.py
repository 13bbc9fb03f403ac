"""The catalogs in a table's property, loaded through PyIceberg's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.catalog.sql import SqlCatalog as TheirCatalog
from pyiceberg.utils.config import Config

from tahoe.base.exceptions import InvalidRequest, NotFound, Unsupported
from tahoe.store.object_store import open_store
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.catalogs.configured import ConfiguredCatalogs, adapter_of, catalog_names


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog(open_store(tmp_path / "a table"))
    log.change(["a1", "b1"])
    return log


def test_another_kind_of_catalog_is_refused_by_name():
    class Other:
        name = "x"

    with pytest.raises(Unsupported, match="Other"):
        adapter_of(Other(), "a.b")
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
    catalog._adapter()._catalog.engine.dispose()


def test_a_catalog_that_is_not_configured_is_named_without_its_secrets(monkeypatch):
    with pytest.raises(NotFound, match="nowhere"):
        ConfiguredCatalogs().named("nowhere:a.b").load()
    monkeypatch.setenv("PYICEBERG_CATALOG__ODD__URI", "odd://user:hunter2@host")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    with pytest.raises(NotFound, match="odd") as raised:
        ConfiguredCatalogs().named("odd:a.b").load()
    assert "hunter2" not in str(raised.value)
