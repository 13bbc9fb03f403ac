"""A stream that tracks its table's schema goes on with the other of delta-spark and Tahoe, wherever the one stopped: their logs are one."""

from __future__ import annotations

import json
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
Rows = list[tuple[object, ...]]


def of_delta_spark(spark: SparkSession, path: str, options: dict[str, str]) -> DataFrame:
    return spark.readStream.format("delta").options(**options).load(path)


def of_tahoe(spark: SparkSession, path: str, options: dict[str, str]) -> DataFrame:
    return read_stream(spark, Table(path), options)


def run(rows: DataFrame, checkpoint: Path) -> tuple[Rows, str]:
    """The rows of a query up to the present, and the error class of its failure."""
    actual: Rows = []
    writer = rows.writeStream.foreachBatch(lambda batch, _number: actual.extend(sorted(map(tuple, batch.collect()))))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        return actual, next(word for word in str(error).replace("]", "[").split("[") if word.startswith("DELTA_"))
    return actual, ""


EVOLVED, BLOCKED = "DELTA_STREAMING_METADATA_EVOLUTION", "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
CHANGES = [
    (("ALTER TABLE {t} ADD COLUMN more INT",), "2, 'b', 5", (2, "b", 5), ""),
    (("ALTER TABLE {t} RENAME COLUMN v TO w", "ALTER TABLE {t} ADD COLUMN more INT"), "2, 'b', 5", (2, "b", 5), "Rename"),
    (("ALTER TABLE {t} DROP COLUMN v",), "2", (2,), "Drop"),
    (("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",), "2, 'b'", (2, "b"), "TypeChange"),
]


CASES = [(change, False) for change in CHANGES] + [(CHANGES[1], True)]


@pytest.mark.parametrize(
    "readers", [(of_delta_spark, of_tahoe), (of_tahoe, of_delta_spark)], ids=["delta-spark first", "Tahoe first"]
)
@pytest.mark.parametrize(("change", "feed"), CASES, ids=[f"{c[0][0][16:]}{', feed' * feed}" for c, feed in CASES])
def test_the_other_goes_on_at_each_step(
    jvm: SparkSession,
    path: str,
    tmp_path: Path,
    readers: tuple[Reader, Reader],
    change: tuple[tuple[str, ...], str, Rows, str],
    feed: bool,
) -> None:
    """In turn: the first rows, the stop at the change, the refusal, the rows after it, and nothing more."""
    statements, values, row, allowing = change
    jvm.sql(
        f"CREATE TABLE delta.`{path}` (id INT, v STRING) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableTypeWidening' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    jvm.sql(f"INSERT INTO delta.`{path}` VALUES (0, 'x')")
    place = tmp_path / "at"
    options = {"schemaTrackingLocation": str(place / "schemas"), "streamingSourceTrackingId": "one"}
    if feed:
        options |= {"readChangeFeed": "true", "startingVersion": "0"}
    turns = [readers[number % 2] for number in range(6)]

    def step(**more: str) -> tuple[Rows, str]:
        rows, stopped = run(turns.pop(0)(jvm, path, {**options, **more}), place)
        return [item[:-3] if feed else item for item in rows], stopped

    assert step() == ([(0, "x")], "")
    jvm.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a')")
    for statement in statements:
        jvm.sql(statement.format(t=f"delta.`{path}`"))
    jvm.sql(f"INSERT INTO delta.`{path}` VALUES ({values})")
    assert step() == ([(1, "a")], EVOLVED)
    allowed = {f"allowSourceColumn{allowing}": "always"} if allowing else {}
    if allowing:
        assert step() == ([], BLOCKED)
        changed = max(json.loads(file.read_text().splitlines()[1])["deltaCommitVersion"] for file in log_files(place))
        allowed = {f"allowSourceColumn{allowing}": str(changed)}
    assert step(**allowed) == ([row], "")
    assert step(**allowed) == ([], "")
    numbers = sorted(int(file.name) for file in log_files(place))
    assert numbers == list(range(len(numbers))) and len(numbers) == 1 + len(statements)
    # Both write the same members, but for the one that only says which files stand for several changes in a row.
    entries = [json.loads(file.read_text().splitlines()[1]) for file in log_files(place)]
    assert len({tuple(name for name in entry if name != "previousMetadataSeqNum") for entry in entries}) == 1
    assert len({entry["sourceMetadataPath"] for entry in entries}) == 1
    (folder,) = (place / "schemas").iterdir()
    assert folder.name == f"_schema_log_{Table(path).snapshot().metadata.id}_one"


def log_files(place: Path) -> list[Path]:
    return [file for file in (place / "schemas").glob("*/*") if file.name.isdecimal()]
