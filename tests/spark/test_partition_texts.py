"""Every text is a partition value, or is refused by name, in every writer: Spark, the core, the portable source, row commands."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.tables import DeltaTable

TEXTS = [
    *[
        "a",
        "__HIVE_DEFAULT_PARTITION__",
        "a/b",
        "a=b",
        "50%",
        "%2F",
        "%%00",
        "a:b",
        "'q'",
        '"dq"',
        "two\nlines",
        "end\n",
        "cr\r",
        "tab\t",
    ],
    *[
        "😀",
        "é",
        "e\u0301",
        "\0",
        "\x01",
        "\x1f",
        "\x7f",
        "\x80",
        "\ufeff",
        "trail ",
        " lead",
        "trail.",
        ".",
        "..",
        "a  b",
        "~",
        "#",
        "?",
        "*",
    ],
    *[
        "[a]",
        "{b}",
        "\\",
        "null",
        "NULL",
        "\u2028",
        "&",
        "+",
        "a+b",
        "|",
        "^",
        "<>",
        "$x",
        "`",
        "_hidden",
        ".dot",
        "-",
        "!",
        "!YQ",
        "=",
        "/",
    ],
    *["//", "=x", "_delta_log", "_temporary", "a;b", "x" * 170, "é" * 90, "中文" * 28],
]
WANTED = {(row, text) for row, text in enumerate(TEXTS)} | {
    (-1, None),
    (-2, None),
}  # NULL, and '', which the log cannot distinguish from it
SCHEMA = "id long, p string"
CHANGES = {"delta.enableChangeDataFeed": "true"}  # so that change data files are written, too


def _frame(spark, shift=0):
    rows = [(number + shift, text) for number, text in enumerate(TEXTS)]
    return spark.createDataFrame([*rows, (-1, None), (-2, "")], SCHEMA)


def _rows(frame):
    return {(row.id, row.p) for row in frame.select("id", "p").collect()}


# Over five seconds: each text is a file of its own in each of four writes, and one table goes through all of them.
def test_all_texts_come_back_from_all_writers(spark, path):
    writer = _frame(spark).coalesce(1).write.format("delta").partitionBy("p")
    writer.options(**CHANGES).save(path)
    assert _rows(spark.read.format("delta").load(path)) == WANTED
    assert {(row["id"], row["p"]) for row in Table(path).to_arrow().to_pylist()} == WANTED

    for text in ("__HIVE_DEFAULT_PARTITION__", "two\nlines", "😀", "%2F", "é" * 90):
        actual = spark.read.format("delta").load(path).where(sf.col("p") == text)
        assert [row.id for row in actual.collect()] == [TEXTS.index(text)]
    assert {row.id for row in spark.read.format("delta").load(path).where("p is null").collect()} == {-1, -2}

    table = DeltaTable.forPath(spark, path)
    table.update("id >= 0", {"id": "id + 1000"})
    changed = {(row + 1000 if row >= 0 else row, text) for row, text in WANTED}
    assert _rows(spark.read.format("delta").load(path)) == changed
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(path)
    assert _rows(feed.where("_change_type = 'update_postimage'")) == {item for item in changed if item[0] >= 0}
    again = spark.read.format("delta").load(path).where("id >= 0")
    again.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(path)
    assert _rows(spark.read.format("delta").load(path)) == changed
    only = spark.createDataFrame([(7, "__HIVE_DEFAULT_PARTITION__")], SCHEMA)
    only.write.format("delta").mode("overwrite").option("replaceWhere", "p = '__HIVE_DEFAULT_PARTITION__'").save(path)
    table.delete("p is null")
    assert {row for row in _rows(spark.read.format("delta").load(path)) if row[0] < 1000} == {(7, "__HIVE_DEFAULT_PARTITION__")}
    assert len(_rows(spark.read.format("delta").load(path))) == len(TEXTS)
    assert Table(path).check() == []


# Over five seconds where it comes first: Spark starts a Python process for each kind of step that it asks of a data source.
def test_the_portable_writer_and_reader_do_the_same(plain, spark, path):
    long = [(len(TEXTS), "x" * 300), (len(TEXTS) + 1, "é" * 200)]
    # One task, as each task is a Python process that imports Tahoe before it writes.
    frame = _frame(plain).unionByName(plain.createDataFrame(long, SCHEMA)).coalesce(1)
    frame.write.format("delta").mode("append").option("partitionBy", "p").save(path)
    assert _rows(plain.read.format("delta").load(path)) == WANTED | set(long)
    assert _rows(spark.read.format("delta").load(path)) == WANTED | set(long)


def test_values_without_a_folder_name_are_refused_by_name_and_leave_nothing(spark, path):
    frame = spark.createDataFrame([(1, "x" * 300), (2, None)], SCHEMA)
    with pytest.raises(InvalidRequest, match="partition column 'p' is too long"):
        frame.write.format("delta").partitionBy("p").save(path)
    assert not list(Path(path).rglob("*.parquet"))
    core = Table.create(path, pa.schema([("id", pa.int64()), ("p", pa.string())]), partition_by=["p"])
    core.append(pa.table({"id": [1], "p": ["x" * 300]}))
    assert _rows(spark.read.format("delta").load(path)) == {(1, "x" * 300)}
