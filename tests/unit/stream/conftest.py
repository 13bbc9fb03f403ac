"""Tables of numbers for tests of streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table

PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}


@pytest.fixture
def make(memory_url: str) -> Callable[..., Table]:
    """Return a function that creates a table with the column ``id`` and appends each list of numbers as a version."""

    def made(*appended: list[int], **options: Any) -> Table:
        options = {"properties": PROPERTIES, **options}
        table = Table.create(memory_url, pa.schema([("id", pa.int64())]), **options)
        for ids in appended:
            table.append(pa.table({"id": pa.array(ids, pa.int64())}), max_rows_per_file=1)
        return table

    return made
