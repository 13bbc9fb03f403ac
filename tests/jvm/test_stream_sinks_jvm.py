"""A query whose sink was delta-spark's goes on with Tahoe's, on its checkpoint and its table, and back: no batch twice, none left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.spark.commands.write_options import Insert
from tahoe.spark.sink.sink import StreamWriterOptions, start_query
from tahoe.spark.sink.sink_request import sink_request

pytestmark = [pytest.mark.jvm, pytest.mark.filterwarnings("ignore::tahoe.exceptions.TahoeWarning")]

Run = Callable[[DataFrame, str, Path], None]


def by_delta_spark(rows: DataFrame, path: str, checkpoint: Path) -> None:
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.start(path).awaitTermination()


def by_tahoe(rows: DataFrame, path: str, checkpoint: Path) -> None:
    spark = rows.sparkSession
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    request: Insert = sink_request("append", None, {}, {})
    start_query(spark, Table(path), StreamWriterOptions.of(spark, writer._jwrite), request, path=path).awaitTermination()


@pytest.mark.parametrize("first", [by_delta_spark, by_tahoe], ids=["delta-spark first", "Tahoe first"])
def test_either_sink_goes_on_where_the_other_was(jvm: SparkSession, path: str, tmp_path: Path, first: Run) -> None:
    second = by_tahoe if first is by_delta_spark else by_delta_spark
    landed, checkpoint = str(tmp_path / "in"), tmp_path / "at"

    def rows() -> DataFrame:
        return jvm.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(landed)

    for batch in range(4):
        jvm.range(batch * 10, batch * 10 + 10).coalesce(1).write.mode("append").parquet(landed)
        if batch == 2:
            # As after a crash of the first between the table's commit and the checkpoint's: the other is given its last batch again.
            for file in (checkpoint / "commits").iterdir():
                if file.name.strip(".").startswith("1"):
                    file.unlink()
        (first if batch < 2 else second)(rows(), path, checkpoint)
        actual = sorted(row.id for row in jvm.read.format("delta").load(path).collect())
        assert actual == list(range(batch * 10 + 10))
    numbers = [int(item["operationParameters"]["epochId"]) for item in reversed(Table(path).history())]
    assert numbers == [0, 1, 2, 3]
    assert len({item["operationParameters"]["queryId"] for item in Table(path).history()}) == 1
