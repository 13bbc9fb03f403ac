"""The table that clients without Spark read and append to: written by Spark with Delta enabled by configuration."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.clients.child import ENABLED, needs, result


@pytest.fixture(scope="session")
def _lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("pyspark")
    folder = tmp_path_factory.mktemp("lake")
    assert result("write_orders.py", folder, variables=ENABLED)["operations"] == ["WRITE", "UPDATE", "DELETE"]
    return folder / "orders"


@pytest.fixture
def orders(_lake: Path, tmp_path: Path) -> str:
    """A path of a table of its own: ids 0 to 89, partitioned by ``shop``, of which 7 has an amount half a unit greater than its id."""
    shutil.copytree(_lake, tmp_path / "orders")
    return str(tmp_path / "orders")


@pytest.fixture
def totals() -> tuple[int, int, Decimal]:
    """The number of rows, the sum of the ids and the sum of the amounts in the newest version."""
    return 90, 4005, Decimal("4005.50")


@pytest.fixture
def added() -> dict[str, list[Any]]:
    """Rows for clients that append; their ``at`` is NULL."""
    return {"id": [1000, 1001], "shop": ["0", "9"], "amount": [Decimal("1.25"), Decimal("2.25")]}
