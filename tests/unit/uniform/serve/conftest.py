"""A warehouse with tables at several depths, and a catalog for it, one per test module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog
from tests.unit.uniform.serve.serving import make_table, warehouse_of


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables directly in the warehouse, in a folder, two folders down, and one without UniForm."""
    root = tmp_path_factory.mktemp("ware house")
    make_table(root / "top")
    make_table(root / "sales" / "orders")
    make_table(root / "sales" / "2026 q1.eu" / "line items")
    make_table(root / "sales" / "plain", {})
    (root / "empty").mkdir()
    (root / "_hidden").mkdir()
    (root / "a file").write_text("x")
    return root


@pytest.fixture(scope="module")
def catalog(root: Path) -> ReadOnlyCatalog:
    return ReadOnlyCatalog(warehouse_of(root))
