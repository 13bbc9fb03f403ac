"""The inputs of commits on Spark, as lineage reports them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tahoe.observe import lineage_queue
from tahoe.observe.lineage import SWITCH
from tahoe.observe.lineage_facts import LineageFacts
from tahoe.observe.lineage_queue import LineageQueue
from tahoe.spark.scan.inputs import inputs_of


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> _Drained:
    """The commits of the test, instead of a server."""
    sent = list[LineageFacts]()
    queue = LineageQueue(sent.append)
    monkeypatch.setattr(lineage_queue, "LINEAGE_QUEUE", queue)
    monkeypatch.setenv(SWITCH, "true")
    return _Drained(queue, sent)


class _Drained:
    def __init__(self, queue: LineageQueue, sent: list[LineageFacts]) -> None:
        self._queue, self._sent = queue, sent

    def last(self) -> LineageFacts:
        assert self._queue.drain(600) == 0
        return self._sent[-1]


def test_writes_and_merges_have_the_tables_and_files_of_their_query_as_inputs(
    spark: SparkSession, tmp_path: Path, commits: _Drained
) -> None:
    first, two, files, target = (f"file://{tmp_path}/{name}" for name in ("one", "two", "files", "target"))
    spark.range(3).write.format("delta").save(first)
    assert commits.last().inputs == ()
    spark.range(2, 5).write.format("delta").save(two)
    spark.range(5).write.parquet(files)

    read = (
        spark.read.format("delta").load(first).join(spark.read.parquet(files), "id").union(spark.read.format("delta").load(two))
    )
    read.write.format("delta").save(target)
    written = commits.last()
    assert (written.table, sorted(written.inputs)) == (target, sorted([first, files, two]))

    spark.sql(f"MERGE INTO delta.`{target}` t USING delta.`{two}` s ON t.id = s.id WHEN MATCHED THEN DELETE")
    merged = commits.last()
    assert (merged.summary.operation, merged.inputs) == ("MERGE", (two,))

    spark.sql(f"CREATE OR REPLACE TABLE delta.`{target}` USING delta AS SELECT * FROM delta.`{first}`")
    created = commits.last()
    assert (created.summary.lifecycle, created.inputs) == ("OVERWRITE", (first,))
    # Some forms insert through other commands.
    spark.sql(f"INSERT INTO delta.`{target}` SELECT * FROM delta.`{two}`")
    assert commits.last().inputs == (two,)


def test_a_query_is_not_examined_while_lineage_is_off(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)

    class Unexamined:
        sparkSession = spark  # noqa: N815 - PySpark's name

        @property
        def _jdf(self) -> object:
            raise AssertionError("examined")

    assert inputs_of(Unexamined()) == ()  # type: ignore[arg-type]
