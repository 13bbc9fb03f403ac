"""Sessions of Spark Connect with a server whose Python has no Tahoe: the same operations as in a classic session, with the same results."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, InvariantViolation, NotFound, SchemaMismatch, TahoeError, Unsupported
from tahoe.settings.warn_once import TahoeWarning, reset_warnings
from tahoe.spark.connect.merge import _with_hints
from tahoe.spark.executors import shipped
from tahoe.spark.names.settings import _LOOKED_AT
from tahoe.tables import DeltaTable
from tests.operations.operations import (
    FEED,
    OPERATIONS,
    ROWS,
    VECTORS,
    Operation,
    made,
    new_rows,
    on_table,
    outcome,
    state,
    written,
)
from tests.sampling import sampled
from tests.spark.connect_server import remote

ROOT = Path(__file__).parents[2]


# Over five seconds: an operation starts Python workers on the server.
@pytest.mark.parametrize("operation", sampled(OPERATIONS, 25), ids=str)
def test_an_operation_has_the_outcome_of_a_classic_session(
    connect: Any, spark: Any, tmp_path: Path, operation: Operation
) -> None:
    expected = outcome(operation, spark, f"file://{tmp_path}/classic")
    with remote():
        actual = outcome(operation, connect, f"file://{tmp_path}/connect")
    assert actual == expected


def test_the_server_has_no_tahoe(connect: Any) -> None:
    def look(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from importlib.util import find_spec

        yield pa.RecordBatch.from_pydict({"found": [str(find_spec("tahoe"))]})

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with remote():
        assert {row.found for row in connect.range(1).mapInArrow(look, "found string").collect()} == {"None"}


def test_lengths_and_time_zones_are_those_of_the_session(connect: Any, tmp_path: Path) -> None:
    """Settings that the server's Python workers do not see."""
    path = str(tmp_path / "t")
    with remote():
        connect.sql(f"CREATE TABLE delta.`{path}` (k INT, c CHAR(3), s STRUCT<v: VARCHAR(2)>) USING delta")
        connect.conf.set("spark.sql.legacy.charVarcharAsString", "true")
        try:
            connect.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a', named_struct('v', 'long'))")
            connect.sql(f"UPDATE delta.`{path}` SET k = 2 WHERE c = 'a'")
        finally:
            connect.conf.unset("spark.sql.legacy.charVarcharAsString")
        assert Table(path).to_arrow().to_pylist() == [{"k": 2, "c": "a", "s": {"v": "long"}}]
        connect.sql(f"INSERT INTO delta.`{path}` VALUES (3, 'b', NULL)")
        connect.sql(f"OPTIMIZE delta.`{path}`")
        connect.sql(f"DELETE FROM delta.`{path}` WHERE c = 'b'")  # copies the long text
        assert connect.sql(f"SELECT k FROM delta.`{path}` WHERE c = 'a'").first()[0] == 2
        made = Table(path).history()[-1]["timestamp"]
        connect.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        try:
            local = f"{made + timedelta(hours=9):%Y-%m-%d %H:%M:%S.%f}"
            assert connect.sql(f"SELECT * FROM delta.`{path}` TIMESTAMP AS OF '{local}'").count() == 0
            later = f"TIMESTAMP AS OF TIMESTAMP '{local}' + INTERVAL 0 SECONDS"
            assert connect.sql(f"SELECT * FROM delta.`{path}` {later}").count() == 0
            assert connect.read.format("delta").option("timestampAsOf", local).load(path).count() == 0
            with pytest.raises(NotFound, match="DELTA_TIMESTAMP_EARLIER"):
                connect.read.format("delta").option("timestampAsOf", f"{made:%Y-%m-%d %H:%M:%S.%f}").load(path).count()
        finally:
            connect.conf.unset("spark.sql.session.timeZone")


def test_functions_of_several_rows_are_no_values(connect: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with remote():
        connect.range(3).write.format("delta").save(path)
        for value in ("max(id)", "explode(array(1L, 2L))", "row_number() OVER (ORDER BY id)"):
            with pytest.raises(InvalidRequest, match="UNSUPPORTED_EXPR_FOR_OPERATOR"):
                connect.sql(f"UPDATE delta.`{path}` SET id = {value}")
            with pytest.raises(InvalidRequest, match="UNSUPPORTED_EXPR_FOR_OPERATOR"):
                connect.sql(f"DELETE FROM delta.`{path}` WHERE {value} > 1")
        with pytest.raises(SchemaMismatch, match=r"CAST_INVALID_INPUT.*'x'.*column 'id'"):
            connect.sql(f"INSERT INTO delta.`{path}` SELECT 'x'")
    assert Table(path).version() == 0


def test_relative_paths_are_those_of_the_client(connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with remote():
        connect.range(3).write.format("delta").save("written")
        for reader in (connect.read.format("delta"), connect.read.format("delta").option("path", "written")):
            path = None if reader._options else "written"
            assert reader.load(path).count() == reader.load(path).count() == 3
        assert connect.read.format("delta").load("./written@v0").count() == 3
        for target, start in (("copied", "copied"), ("copied again", None)):
            writer = connect.readStream.format("delta").load("written").writeStream.format("delta").trigger(availableNow=True)
            writer = writer.option("checkpointLocation", f"{tmp_path}/checkpoint {target}")
            (writer if start else writer.option("path", target)).start(start).awaitTermination()
            assert connect.read.format("delta").load(target).count() == 3
    assert {"copied", "copied again", "written"} <= {path.name for path in tmp_path.iterdir()}


class TestNames:
    def test_a_managed_table_lives_from_create_to_drop(self, connect: Any) -> None:
        with remote():
            connect.sql(
                "CREATE TABLE life (id BIGINT NOT NULL, twice BIGINT GENERATED ALWAYS AS (id * 2), "
                "number BIGINT GENERATED ALWAYS AS IDENTITY, word STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
            )
            connect.sql("INSERT INTO life (id, word) VALUES (1, 'a'), (2, 'b')")
            connect.sql("ALTER TABLE life ADD CONSTRAINT positive CHECK (id > 0)")
            with pytest.raises(InvariantViolation, match="positive"):
                connect.sql("INSERT INTO life (id) VALUES (-1)")
            connect.sql("MERGE INTO life USING (SELECT 2L AS id) AS s ON life.id = s.id WHEN MATCHED THEN UPDATE SET id = 5")
            rows = connect.sql("SELECT id, twice, word FROM life ORDER BY id").collect()
            assert list(map(tuple, rows)) == [(1, 2, "a"), (5, 10, "b")]
            assert connect.table("life").select("number").distinct().count() == 2
            table = DeltaTable.forName(connect, "life")
            assert table.detail().first().name == "spark_catalog.default.life"
            assert connect.sql("DESCRIBE HISTORY life").first().operation == "MERGE"
            with pytest.raises(AnalysisException, match="already exists"):
                connect.sql("CREATE TABLE life (id INT) USING delta")
            connect.sql("DROP TABLE life")
            assert not connect.catalog.tableExists("life")

    def test_writers_find_tables_by_name(self, connect: Any, tmp_path: Path) -> None:
        with remote():
            connect.range(3).write.format("delta").option("path", str(tmp_path / "t")).saveAsTable("named")
            connect.range(3, 6).write.format("delta").mode("append").saveAsTable("named")
            connect.range(6, 7).selectExpr("cast(id as int) AS other").write.insertInto("named")
            connect.range(7, 8).writeTo("named").append()
            assert connect.read.table("named").count() == 8
            connect.range(2).write.format("delta").mode("overwrite").saveAsTable("named")
            assert connect.table("named").count() == 2
            connect.sql("DROP TABLE named")
        assert [entry["operation"] for entry in Table(tmp_path / "t").history()] == [
            "CREATE OR REPLACE TABLE AS SELECT",
            "WRITE",
            "WRITE",
            "WRITE",
            "CREATE TABLE AS SELECT",
        ]

    def test_a_table_like_another_has_its_columns_and_properties(self, connect: Any, tmp_path: Path) -> None:
        with remote():
            connect.sql(
                "CREATE TABLE first (id BIGINT, p INT) USING delta PARTITIONED BY (p) COMMENT 'c' TBLPROPERTIES ('k' = 'v')"
            )
            connect.sql("INSERT INTO first VALUES (1, 2)")
            connect.sql(f"CREATE TABLE like_delta LIKE first LOCATION '{tmp_path}/like' TBLPROPERTIES ('l' = 'w')")
            connect.sql(
                "CREATE TABLE other (id BIGINT, p INT) USING parquet PARTITIONED BY (p) COMMENT 'd' TBLPROPERTIES ('k' = 'v')"
            )
            connect.sql("CREATE TABLE like_parquet LIKE other USING delta")
            connect.sql("CREATE TABLE IF NOT EXISTS like_parquet LIKE first")
            connect.range(3).createOrReplaceTempView("three")
            connect.sql("CREATE TABLE like_view LIKE three USING delta")
            with pytest.raises(Unsupported, match="no table of another format"):
                connect.sql("CREATE TABLE like_csv LIKE first USING csv")
            connect.sql("CREATE TABLE parquet_like LIKE other")
            assert "parquet" in str(connect.sql("SHOW CREATE TABLE parquet_like").first()[0])
            made = {
                name: DeltaTable.forName(connect, name).detail().first() for name in ("like_delta", "like_parquet", "like_view")
            }
            assert connect.table("like_delta").count() == 0
            assert connect.table("like_view").columns == ["id"]
            word = connect.sql("SELECT * FROM IDENTIFIER(:name)", {"name": "first"}).first()
            for name in ("first", "like_delta", "other", "like_parquet", "like_view", "parquet_like"):
                connect.sql(f"DROP TABLE {name}")
        assert tuple(word) == (1, 2)
        assert made["like_delta"].partitionColumns == made["like_parquet"].partitionColumns == ["p"]
        assert (made["like_delta"].description, made["like_parquet"].description) == ("c", "d")
        assert {"k": "v", "l": "w"}.items() <= made["like_delta"].properties.items()
        assert made["like_parquet"].properties["k"] == "v"

    @pytest.mark.parametrize("name", ["it's", "slash\\", "x\\' LIKE 'y", "(", "a*b", "nul\0"])
    def test_any_characters_in_a_name_are_part_of_the_name(self, connect: Any, name: str) -> None:
        with remote():
            connect.sql("CREATE TABLE axb (id BIGINT) USING delta")
            try:
                with pytest.raises(
                    Exception, match=r"DELTA_MISSING_DELTA_TABLE|DELTA_TABLE_NOT_FOUND|TABLE_OR_VIEW_NOT_FOUND|not a Delta table"
                ):
                    DeltaTable.forName(connect, f"`{name}`")
            finally:
                connect.sql("DROP TABLE axb")

    def test_copies_and_conversions(self, connect: Any, tmp_path: Path) -> None:
        with remote():
            connect.range(4).write.parquet(str(tmp_path / "p"))
            connect.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/p`")
            connect.sql(f"CREATE TABLE copy SHALLOW CLONE delta.`{tmp_path}/p` LOCATION '{tmp_path}/c'")
            assert connect.table("copy").count() == 4
            clone = DeltaTable.forPath(connect, f"{tmp_path}/p").clone(str(tmp_path / "d"))
            assert clone.toDF().count() == 4
            connect.sql("DROP TABLE copy")


class TestExactlyOnce:
    def test_a_client_that_stops_before_its_commit_changes_nothing(
        self, connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = made(str(tmp_path / "t"), ())
        before, files = state(path), set(Path(path).rglob("*.parquet"))

        def stop(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with remote(), monkeypatch.context() as patch:
            patch.setattr(Table, "commit", stop)
            for run in (written("append"), on_table(lambda table, _: table.update("id < 3", {"s": "'x'"}))):
                with pytest.raises(KeyboardInterrupt):
                    run(connect, path)
        assert state(path) == before
        assert set(Path(path).rglob("*.parquet")) > files  # written, and named by no commit

    def test_tasks_that_run_twice_write_each_row_once(
        self, connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = made(str(tmp_path / "t"), ())
        sent_whole = shipped.sent_whole
        cloudpickle.register_pickle_by_value(sys.modules[__name__])

        def sent_twice(*arguments: Any) -> Any:
            task = sent_whole(*arguments)

            def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                from pyspark import TaskContext

                context = TaskContext.get()
                answers = list(task(batches))
                if context is not None and context.attemptNumber() == 0:
                    raise RuntimeError("the first attempt fails after it has written its files")
                yield from answers

            return run

        monkeypatch.setattr(shipped, "sent_whole", sent_twice)
        with remote():
            connect.range(100, 104, 1, 2).selectExpr("id", "cast(0 as int) AS p").write.format("delta").mode("append").save(path)
        table = Table(path)
        assert sorted(row["id"] for row in table.snapshot().scan().to_arrow().to_pylist()) == [
            *range(12),
            *range(100, 104),
        ]
        live = len(table.snapshot().files())
        assert len(list(Path(path).rglob("*.parquet"))) == live + 2
        assert table.check() == []

    @pytest.mark.parametrize("properties", [(), (VECTORS,)], ids=["rewriting", "vectors"])
    def test_a_lost_race_against_a_rearrangement_runs_again(
        self, connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: tuple[str, ...]
    ) -> None:
        path = made(str(tmp_path / "t"), properties)
        commit_rows, raced = Table.commit_rows, []

        def after_optimize(self: Table, *arguments: Any, **named: Any) -> Any:
            if not raced:
                raced.append(Table(path).optimize())
            return commit_rows(self, *arguments, **named)

        monkeypatch.setattr(Table, "commit_rows", after_optimize)
        with remote():
            DeltaTable.forPath(connect, path).delete("id = 3 OR id = 9")
        table = Table(path)
        assert [entry["operation"] for entry in table.history(2)] == ["DELETE", "OPTIMIZE"]
        assert table.snapshot().scan().to_arrow().num_rows == 10 and table.check() == []

    @pytest.mark.parametrize(
        ("threshold", "rows", "hinted"),
        [("10MB", 100, ("Range", "Hint")), ("10MB", 10**9, ("Hint", "Range")), ("-1", 1, ("Hint", "Range"))],
    )
    def test_a_merge_broadcasts_a_small_source_if_the_session_allows_it(
        self, connect: Any, threshold: str, rows: int, hinted: tuple[str, str]
    ) -> None:
        with remote():
            connect.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
            try:
                sides = _with_hints(connect.range(1), connect.range(1), rows)
            finally:
                connect.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        assert tuple(type(side._plan).__name__ for side in sides) == hinted

    def test_a_merge_reads_and_conflicts_with_only_the_files_of_its_keys(
        self, connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = made(str(tmp_path / "t"), ())
        commit_rows, raced = Table.commit_rows, []

        def after_delete(self: Table, *arguments: Any, **named: Any) -> Any:
            if not raced:
                raced.append(True)
                Table(path).delete("p = 0")
            return commit_rows(self, *arguments, **named)

        with remote():
            source = connect.range(4, 5).selectExpr("id", "1 AS p", "'merged' AS s").alias("s")
            merge = DeltaTable.forPath(connect, path).alias("t").merge(source, "t.id = s.id AND t.p = s.p")
            merge = merge.whenMatchedUpdate(set={"s": "s.s"})
            assert merge.explain().files_scanned == 1
            monkeypatch.setattr(Table, "commit_rows", after_delete)
            assert merge.execute().first().num_updated_rows == 1
        assert [entry["operation"] for entry in Table(path).history(2)] == ["MERGE", "DELETE"]

    def test_a_source_with_chance_is_read_once(self, connect: Any, tmp_path: Path) -> None:
        path = made(str(tmp_path / "t"), (FEED,))
        with remote():
            source = connect.range(20).selectExpr("id", "rand() AS r").alias("s")
            merge = DeltaTable.forPath(connect, path).alias("t").merge(source, "t.id = s.id AND s.r < 0.5")
            result = merge.whenMatchedDelete().whenNotMatchedInsert("s.r < 0.5", {"id": "s.id"}).execute().first()
        deleted, inserted = result.num_deleted_rows, result.num_inserted_rows
        kinds = [row["_change_type"] for row in Table(path).changes(3).to_pylist()]
        assert (kinds.count("delete"), kinds.count("insert")) == (deleted, inserted)
        assert Table(path).snapshot().scan().to_arrow().num_rows == 12 - deleted + inserted


SECRET = "CANARYsecret0123456789"


@pytest.mark.parametrize("way", ["reader", "writer", "DELETE", "UPDATE", "MERGE", "OPTIMIZE", "stream"])
def test_a_secret_of_the_storage_shows_in_no_plan_and_no_event(
    connect: Any, server_folder: Path, s3_url: str, s3_options: dict[str, str], tmp_path: Path, way: str
) -> None:
    keys = s3_options | {"aws_secret_access_key": SECRET}
    hadoop = {
        "fs.s3a.endpoint": keys["aws_endpoint"],
        "fs.s3a.endpoint.region": keys["aws_region"],
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "a-key",
        "fs.s3a.secret.key": SECRET,
    }
    written = Table.create(s3_url, ROWS.schema, storage_options=keys)
    written.append(ROWS)
    with remote():
        shown = _plans_of(connect, way, s3_url, hadoop, DeltaTable.forPath(connect, s3_url, hadoop), tmp_path)
    events = [path.read_text() for path in (server_folder / "events").rglob("*") if path.is_file()]
    assert any(s3_url in text or "mapInArrow" in text.lower() or "SparkListenerSQLExecutionStart" in text for text in events)
    shown += [*events, (server_folder / "log").read_text()]
    assert [text[max(0, text.index(SECRET) - 300) : text.index(SECRET) + 40] for text in shown if SECRET in text] == []


def _plans_of(spark: Any, way: str, path: str, keys: dict[str, str], table: DeltaTable, folder: Path) -> list[str]:
    """Run a command with a secret and return the texts of its plans."""
    frame = spark.read.format("delta").options(**keys).load(path).where("id > 3")
    match way:
        case "reader":
            assert frame.count() == 8
            return [
                frame._explain_string(extended=True),
                frame._explain_string(mode="formatted"),
                repr(frame),
                frame._plan.print(),
            ]
        case "writer":
            frame.write.format("delta").mode("append").options(**keys).save(path)
        case "DELETE":
            table.delete("id > 10")
        case "UPDATE":
            table.update("id > 10", {"s": "'new'"})
        case "MERGE":
            table.alias("t").merge(new_rows(spark), "t.id = s.id").whenMatchedUpdate(set={"s": "s.s"}).execute()
        case "OPTIMIZE":
            assert frame.count() == 8  # the table has one file, so the command runs no query
            table.optimize().executeCompaction()
        case "stream":
            stream = spark.readStream.format("delta").options(**keys).load(path).writeStream.format("noop")
            query = stream.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
            query.awaitTermination()
            return [str(query.lastProgress), repr(query)]
    return [str(table.history(1).collect()), str(table.detail().collect()), repr(table)]


REFUSED = {
    "expression": "UPDATE {t} SET s = :word",
    "missing value": "UPDATE {t} SET s = :word WHERE id = :id",
    "subquery": "DELETE FROM {t} WHERE id IN (SELECT 1)",
    "chance": "DELETE FROM {t} WHERE rand() < 0.5",
    "serde": "SHOW CREATE TABLE {t} AS SERDE",
    "view": "CREATE VIEW v AS SELECT * FROM {t}",
    "script": "BEGIN ALTER TABLE {t} ADD COLUMN x INT; END",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_refused_commands_change_nothing(connect: Any, tmp_path: Path, text: str) -> None:
    path = made(str(tmp_path / "t"), ())
    with remote():
        word = "x" if ":id" in text else sf.upper(sf.lit("x"))
    values = {"word": word} if ":word" in text else None
    with remote(), pytest.raises((Unsupported, InvalidRequest)):
        connect.sql(text.replace("{t}", f"delta.`{path}`"), values)
    assert Table(path).version() == 2


def test_a_value_of_update_that_no_cast_fits_is_refused_if_no_row_matches(connect: Any, tmp_path: Path) -> None:
    path = made(str(tmp_path / "t"), ())
    with remote(), pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
        connect.sql(f"UPDATE delta.`{path}` SET id = array(id) WHERE id = -1")
    assert Table(path).version() == 2


def test_conditions_of_commands_compare_char_columns_as_spark_does(connect: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    target = f"delta.`{path}`"
    with remote():
        connect.sql(f"CREATE TABLE chars (id INT, c CHAR(3)) USING delta LOCATION '{path}'")
        connect.sql("INSERT INTO chars VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)")
        connect.sql(f"UPDATE {target} SET id = 10 WHERE c = 'a'")
        connect.sql(f"DELETE FROM {target} WHERE c IN ('b', 'x')")
        source = "(SELECT CAST(c AS STRING) AS c, 30 AS id FROM chars WHERE c = 'c')"
        connect.sql(
            f"MERGE INTO {target} AS t USING {source} AS s ON t.c = s.c AND t.c = 'c' WHEN MATCHED THEN UPDATE SET id = s.id"
        )
        connect.sql("DROP TABLE chars")
    assert sorted(Table(path).to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 4, "c": None},
        {"id": 10, "c": "a  "},
        {"id": 30, "c": "c  "},
    ]


def test_errors_of_writers_name_the_option_and_nothing_is_written(connect: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with remote():
        rows = connect.range(3)
        rows.write.format("delta").save(path)
        with pytest.raises(InvalidRequest, match="already"):
            rows.write.format("delta").save(path)
        with pytest.raises(TahoeError, match="bucketBy"):
            rows.write.format("delta").mode("append").bucketBy(2, "id").save(path)
        with pytest.raises(TahoeError, match="partitioned by"):
            rows.write.format("delta").mode("append").partitionBy("id").save(path)
    assert Table(path).version() == 0


# Over five seconds: a query asks a Python process of the server for each step of each batch.
@pytest.mark.soak
def test_streams_and_batches_of_foreach_batch_on_a_server_without_tahoe(connect: Any, tmp_path: Path) -> None:
    source = made(str(tmp_path / "source"), ())
    copy, each = str(tmp_path / "copy"), str(tmp_path / "each")

    def append(rows: Any, _: int) -> None:
        rows.write.format("delta").mode("append").save(each)

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with remote():
        for target in (copy, None):
            writer = connect.readStream.format("delta").load(source).writeStream
            writer = writer.option("checkpointLocation", f"{tmp_path}/at-{target is None}").trigger(availableNow=True)
            query = (
                writer.foreachBatch(append).start() if target is None else writer.partitionBy("p").format("delta").start(target)
            )
            query.awaitTermination(600)
    assert Table(copy).snapshot().scan().to_arrow().num_rows == Table(each).snapshot().scan().to_arrow().num_rows == 12
    assert Table(copy).snapshot().partition_columns == ("p",)


# Over five seconds: a query asks a Python process of the server for each step of each batch.
@pytest.mark.soak
def test_a_function_of_foreach_batch_merges(connect: Any, tmp_path: Path) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    Table.create(source, {"id": "long", "n": "long"}).append(pa.table({"id": [0, 0, 1, 2], "n": [1, 2, 1, 2]}))
    Table.create(target, {"id": "long", "n": "long"}).append(pa.table({"id": [0], "n": [0]}))
    # Of another session than the batches, which have one of their own since Spark 4.3.
    outside = DeltaTable.forPath(connect, target)

    def upsert(rows: Any, _: int) -> None:
        newest = rows.groupBy("id").max("n").withColumnRenamed("max(n)", "n")
        merge = outside.alias("t").merge(newest.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        assert DeltaTable.forPath(rows.sparkSession, target).toDF().where("id = 1").count() == 1
        connect.sql(f"DELETE FROM delta.`{target}` WHERE id = 1")

    with remote():
        stream = connect.readStream.format("delta").load(source)
        writer = stream.writeStream.foreachBatch(upsert).option("checkpointLocation", str(tmp_path / "at"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        assert query.exception() is None
    assert Table(target).to_arrow().sort_by("id").to_pylist() == [{"id": 0, "n": 2}, {"id": 2, "n": 2}]


@pytest.mark.parametrize("is_default", [True, False], ids=["default", "named"])
def test_rows_for_a_function_need_no_table_where_delta_is_the_format(connect: Any, tmp_path: Path, is_default: bool) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    Table.create(source, {"id": "long"}).append(pa.table({"id": [1, 2]}))
    Table.create(target, {"id": "long"})

    def append(rows: Any, _: int) -> None:
        rows.write.format("delta").mode("append").save(target)

    with remote():
        try:
            if is_default:
                connect.conf.set("spark.sql.sources.default", "delta")
            writer = connect.readStream.format("delta").load(source).writeStream
            writer = writer if is_default else writer.format("delta")
            writer = writer.option("checkpointLocation", str(tmp_path / "at")).trigger(availableNow=True).foreachBatch(append)
            assert writer.start().awaitTermination(120)
            with pytest.raises(InvalidRequest, match="gives them to a function"):
                writer.toTable(f"delta.`{target}`")
        finally:
            connect.conf.unset("spark.sql.sources.default")
    assert sorted(Table(target).to_arrow()["id"].to_pylist()) == [1, 2]


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


def test_the_guide_runs(connect: Any, tmp_path: Path) -> None:
    page = (ROOT / "docs/guide/connect.md").read_text(encoding="utf-8")
    opened, used, through_server = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert 'tahoe.enable(SparkSession.builder.remote("' in opened, "as `connected` does, with the address of its own server"
    assert through_server.endswith('.getOrCreate(), storage="server")\n'), "as in `tests/spark/test_server_store.py`"
    with remote():
        df = connect.createDataFrame([(1, "2026-01-01", "click"), (2, "2026-01-02", "view")], "id long, day string, kind string")
        updates = connect.createDataFrame(
            [(2, "2026-01-02", "tap"), (3, "2026-01-02", "tap")], "id long, day string, kind string"
        )
        exec(used.replace("/data/", f"{tmp_path}/"), {"spark": connect, "df": df, "updates": updates})
        connect.sql("DROP TABLE people")
    rows = Table(tmp_path / "events").to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["kind"]) for row in rows] == [(1, "tap"), (2, "tap"), (3, "tap")]


def test_an_optimized_write_gives_each_partition_one_file(connect: Any, tmp_path: Path) -> None:
    with remote():
        path = f"file://{tmp_path}/t"
        rows = connect.range(0, 100, 1, 8).selectExpr("id", "CAST(id % 3 AS INT) AS p")
        for optimized, expected in ((False, 24), (True, 3)):
            writer = rows.write.format("delta").mode("overwrite").partitionBy("p")
            writer.option("optimizeWrite", optimized).save(path)
            assert Table(path).snapshot().files().num_rows == expected
        connect.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true')")
        connect.sql(f"INSERT OVERWRITE delta.`{path}` SELECT id, CAST(id % 3 AS INT) FROM range(0, 90, 1, 8)")
        assert Table(path).snapshot().files().num_rows == 3
        assert connect.read.format("delta").load(path).count() == 90


def test_small_files_are_compacted_after_a_write(connect: Any, tmp_path: Path) -> None:
    with remote():
        path, setting = f"file://{tmp_path}/t", "spark.databricks.delta.autoCompact.minNumFiles"
        connect.range(0, 30, 1, 3).write.format("delta").save(path)
        connect.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')")
        connect.conf.set(setting, "4")
        try:
            connect.range(30, 40, 1, 1).write.format("delta").mode("append").save(path)
        finally:
            connect.conf.unset(setting)
        assert [commit["operation"] for commit in Table(path).history(limit=2)] == ["OPTIMIZE", "WRITE"]
        assert Table(path).snapshot().files().num_rows == 1
        assert connect.read.format("delta").load(path).count() == 40


def test_a_setting_without_effect_warns(connect: Any, tmp_path: Path) -> None:
    with remote():
        name = "spark.databricks.delta.optimizeWrite.binSize"
        connect.conf.set(name, "1g")
        reset_warnings()
        _LOOKED_AT.discard(connect)
        try:
            with pytest.warns(TahoeWarning, match=f"{name}.* is not followed.*advisoryPartitionSizeInBytes"):
                connect.range(1).write.format("delta").save(f"file://{tmp_path}/t")
        finally:
            connect.conf.unset(name)
