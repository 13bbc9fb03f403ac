"""The columns of DESCRIBE DETAIL."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.ops.tables.detail import detail


def test_detail_tells_of_the_live_files_and_of_the_table(memory_url: str) -> None:
    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    table = Table.create(
        memory_url, rows.schema, partition_by=["p"], properties={"owner": "me"}, name="n", description="d", clock=SeededClock()
    )
    assert detail(table.snapshot())["sizeInBytes"] == 0
    table.append(rows)
    found = detail(table.snapshot())
    assert (found["format"], found["name"], found["description"], found["location"]) == ("delta", "n", "d", table.url)
    assert (found["partitionColumns"], found["clusteringColumns"], found["numFiles"]) == (["p"], [], 2)
    assert found["sizeInBytes"] == sum(table.files()["size"].to_pylist())
    assert found["properties"]["owner"] == "me" and found["tableFeatures"] == sorted(found["tableFeatures"])
    assert found["createdAt"] < found["lastModified"] <= datetime.now(UTC) and found["createdAt"].tzinfo is UTC
