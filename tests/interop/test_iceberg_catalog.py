"""A table whose property names an Iceberg catalog is found there by PyIceberg, version after version, without a call by anyone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

import tahoe
from tests.interop.engines import canonical

NAME = "interop"


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """PyIceberg's own configuration of the catalog, as a user would have it in the environment."""
    monkeypatch.setenv(f"PYICEBERG_CATALOG__{NAME.upper()}__TYPE", "sql")
    monkeypatch.setenv(f"PYICEBERG_CATALOG__{NAME.upper()}__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    catalog = load_catalog(NAME)
    yield catalog
    catalog.engine.dispose()


def test_a_commit_reaches_the_catalog_in_the_background(tmp_path: Path, configured) -> None:
    rows = pa.table({"id": pa.array(range(10), pa.int64())})
    properties = {
        "delta.universalFormat.enabledFormats": "iceberg",
        "delta.enableIcebergCompatV2": "true",
        "delta.universalFormat.config.iceberg.catalogs": f"{NAME}:sales.orders",
    }
    table = tahoe.Table.create(tmp_path / "a table", rows.schema, properties=properties)
    for _ in range(3):
        version = table.append(rows)
        status = table.uniform.wait(version, timeout=60)
        assert status.catalogs == (f"{NAME}:sales.orders",)
        assert table.uniform.sync().catalog_errors == {}
        found = configured.load_table("sales.orders")
        assert found.metadata.properties["delta-version"] == str(version)
        assert canonical(found.scan().to_arrow()) == canonical(table.to_arrow())
