"""A query that delta-spark's stream began goes on with Tahoe's from its checkpoint, and back: no row twice, none left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.spark.stream.read_stream import read_stream

pytestmark = [pytest.mark.jvm, pytest.mark.filterwarnings("ignore::tahoe.exceptions.TahoeWarning")]
"""The session has settings of delta-spark, of which Tahoe warns that it ignores them."""

Reader = Callable[[SparkSession, str, dict[str, str]], DataFrame]


def of_delta_spark(spark: SparkSession, path: str, options: dict[str, str]) -> DataFrame:
    return spark.readStream.format("delta").options(**options).load(path)


def of_tahoe(spark: SparkSession, path: str, options: dict[str, str]) -> DataFrame:
    return read_stream(spark, Table(path), options)


def batches(rows: DataFrame, checkpoint: Path) -> list[list[tuple[object, ...]]]:
    """The rows of a query up to the present."""
    actual: list[list[tuple[object, ...]]] = []
    writer = rows.writeStream.foreachBatch(lambda batch, _number: actual.append(sorted(map(tuple, batch.collect()))))
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return [batch for batch in actual if batch]


def rewind(checkpoint: Path, kept: int) -> None:
    """The checkpoint as it was when `kept` batches were done."""
    for kind in ("offsets", "commits"):
        for file in (checkpoint / kind).iterdir():
            number = file.name.removeprefix(".").removesuffix(".crc")
            if number.isdecimal() and int(number) >= kept:
                file.unlink()


def written(jvm: SparkSession, path: str) -> None:
    """Five files in the first version, four more in the third, and changes of rows for the feed."""
    jvm.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    for first, files in ((0, 5), (100, 4)):
        rows = jvm.range(first, first + 20).selectExpr("id", "'x' v").repartition(files)
        rows.write.format("delta").mode("append").save(path)


OPTIONS = [
    {"maxFilesPerTrigger": "2"},
    {"maxFilesPerTrigger": "2", "startingVersion": "1"},
    {"maxBytesPerTrigger": "1", "startingVersion": "2", "skipChangeCommits": "true"},
    {"readChangeFeed": "true", "startingVersion": "0", "maxFilesPerTrigger": "2"},
    {"readChangeFeed": "true", "maxFilesPerTrigger": "2"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("first", [of_delta_spark, of_tahoe], ids=["delta-spark first", "Tahoe first"])
def test_either_goes_on_where_the_other_was(
    jvm: SparkSession, path: str, tmp_path: Path, first: Reader, options: dict[str, str]
) -> None:
    second = of_tahoe if first is of_delta_spark else of_delta_spark
    written(jvm, path)
    whole = batches(first(jvm, path, options), tmp_path / "at")
    assert len(whole) > 2
    for remaining in (1, len(whole) - 1):
        rewind(tmp_path / "at", remaining)
        rest = batches(second(jvm, path, options), tmp_path / "at")
        assert Counter(row for batch in rest for row in batch) == Counter(row for batch in whole[remaining:] for row in batch)
        # Batches have the numbers of offsets: a batch that the other planned is the same batch.
        if "readChangeFeed" not in options:
            assert rest == whole[remaining:]
    jvm.range(500, 505).selectExpr("id", "'y' v").write.format("delta").mode("append").save(path)
    if "readChangeFeed" in options:
        jvm.sql(f"UPDATE delta.`{path}` SET v = 'z' WHERE id = 502")
    # Both read the other's last batch when they start.
    both = [batches(item(jvm, path, options), tmp_path / "at") for item in (first, second)]
    assert both[0][0][0][0] == 500
    assert both[1] == []


def test_delta_spark_stops_at_a_place_in_the_time_of_a_snapshot_and_goes_on_behind_it(
    jvm: SparkSession, path: str, tmp_path: Path
) -> None:
    jvm.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, t TIMESTAMP) USING delta")
    for day in (2, 1, 3):
        jvm.range(day, day + 1).selectExpr("id", f"timestamp '2024-03-0{day} 12:00:00' t").write.format("delta").mode(
            "append"
        ).save(path)
    ordered, plain = {"maxFilesPerTrigger": "1", "withEventTimeOrder": "true"}, {"maxFilesPerTrigger": "1"}

    def of(reader: Reader, options: dict[str, str]) -> list[int]:
        rows = reader(jvm, path, options).withWatermark("t", "1 hour")
        return [row[0] for batch in batches(rows, tmp_path / "at") for row in batch]

    assert of(of_tahoe, ordered) == [1, 2, 3]
    rewind(tmp_path / "at", 1)
    for options in (plain, ordered):  # an option that delta-spark does not know
        with pytest.raises(StreamingQueryException, match="DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"):
            of(of_delta_spark, options)
    assert of(of_tahoe, ordered) == [2, 3]
    jvm.range(4, 5).selectExpr("id", "timestamp '2024-03-04' t").write.format("delta").mode("append").save(path)
    assert of(of_tahoe, ordered) == [4]
    jvm.range(5, 6).selectExpr("id", "timestamp '2024-03-05' t").write.format("delta").mode("append").save(path)
    assert of(of_delta_spark, plain) == [5]
