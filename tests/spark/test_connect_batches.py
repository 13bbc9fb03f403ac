"""``foreachBatch`` over Spark Connect: the function runs on the server, whose Python has no Tahoe, with all of Tahoe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.tables import DeltaTable
from tests.spark.connect_server import remote


# Over five seconds: a query asks a Python process of the server for each step of each batch.
@pytest.mark.soak
def test_a_function_of_foreach_batch_merges(connect: Any, tmp_path: Path) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    Table.create(source, {"id": "long", "n": "long"}).append(pa.table({"id": [0, 0, 1, 2], "n": [1, 2, 1, 2]}))
    Table.create(target, {"id": "long", "n": "long"}).append(pa.table({"id": [0], "n": [0]}))

    def upsert(rows: Any, _: int) -> None:
        newest = rows.groupBy("id").max("n").withColumnRenamed("max(n)", "n")
        merge = DeltaTable.forPath(rows.sparkSession, target).alias("t").merge(newest.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        connect.sql(f"DELETE FROM delta.`{target}` WHERE id = 1")

    with remote():
        stream = connect.readStream.format("delta").load(source)
        writer = stream.writeStream.foreachBatch(upsert).option("checkpointLocation", str(tmp_path / "at"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        assert query.exception() is None
    assert Table(target).to_arrow().sort_by("id").to_pylist() == [{"id": 0, "n": 2}, {"id": 2, "n": 2}]


def test_an_error_of_tahoe_in_the_function_names_the_table(connect: Any, tmp_path: Path) -> None:
    source, missing = str(tmp_path / "source"), str(tmp_path / "missing")
    Table.create(source, {"id": "long"}).append(pa.table({"id": [1]}))

    def update(rows: Any, _: int) -> None:
        DeltaTable.forPath(rows.sparkSession, missing).update(set={"id": "1"})

    with remote():
        stream = connect.readStream.format("delta").load(source)
        writer = stream.writeStream.foreachBatch(update).option("checkpointLocation", str(tmp_path / "at"))
        query = writer.trigger(availableNow=True).start()
        with pytest.raises(Exception, match=r"DELTA_(TABLE_NOT_FOUND|MISSING_DELTA_TABLE).*missing"):
            query.awaitTermination(120)
