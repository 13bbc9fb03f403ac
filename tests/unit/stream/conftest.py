"""Tables of numbers, and what a stream gives of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tahoe.table import Table

PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}


@pytest.fixture
def make(memory_url: str) -> Callable[..., Table]:
    """A table of the column ``id``, with the versions that appending each of these lists of numbers makes."""

    def made(*appended: list[int], **options: Any) -> Table:
        options = {"properties": PROPERTIES, **options}
        table = Table.create(memory_url, pa.schema([("id", pa.int64())]), **options)
        for ids in appended:
            table.append(pa.table({"id": pa.array(ids, pa.int64())}), max_rows_per_file=1)
        return table

    return made
