"""The columns of DESCRIBE DETAIL."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.ops.tables.detail import detail


def test_detail_describes_the_live_files_and_the_table(memory_url: str) -> None:
    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    table = Table.create(
        memory_url, rows.schema, partition_by=["p"], properties={"owner": "me"}, name="n", description="d", clock=SeededClock()
    )
    assert detail(table.snapshot())["sizeInBytes"] == 0
    table.append(rows)
    actual = detail(table.snapshot())
    assert (actual["format"], actual["name"], actual["description"], actual["location"]) == ("delta", "n", "d", table.url)
    assert (actual["partitionColumns"], actual["clusteringColumns"], actual["numFiles"]) == (["p"], [], 2)
    assert actual["sizeInBytes"] == sum(table.files()["size"].to_pylist())
    assert actual["properties"]["owner"] == "me" and actual["tableFeatures"] == sorted(actual["tableFeatures"])
    assert actual["createdAt"] < actual["lastModified"] <= datetime.now(UTC) and actual["createdAt"].tzinfo is UTC
