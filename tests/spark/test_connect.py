"""Sessions of Spark Connect with a server whose Python has no Tahoe: the same operations as in a classic session, with the same results."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, InvariantViolation, TahoeError, Unsupported
from tahoe.spark.connect import remote_rows as connect_rows
from tahoe.tables import DeltaTable
from tests.sampling import sampled
from tests.spark.connect_server import connected, remote, server


@pytest.fixture(scope="module")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the server's log and events."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def connect(server_folder: Path, java_options: str) -> Iterator[Any]:
    """A session of a server without Tahoe."""
    with server(server_folder, java_options) as url:
        session = connected(url)
        yield session
        with remote():
            session.stop()


@dataclass(frozen=True)
class Operation:
    """An operation on a table of `ROWS`, by the API that classic sessions and those of Spark Connect share.

    Args:
        run: takes a session and the table's path; its result is compared too.
        properties: of the table.
    """

    name: str
    run: Callable[[Any, str], object]
    properties: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


ROOT = Path(__file__).parents[2]
ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "p": pa.array([number % 3 for number in range(12)], pa.int32()),
        "s": pa.array([None if number == 7 else f"text {number}" for number in range(12)]),
        "n": pa.array([{"a": number, "b": "x"} for number in range(12)], pa.struct({"a": pa.int32(), "b": pa.string()})),
    }
)
VECTORS, FEED, TRACKED = "delta.enableDeletionVectors", "delta.enableChangeDataFeed", "delta.enableRowTracking"


def _sql(text: str, values: dict[str, object] | list[object] | None = None) -> Callable[[Any, str], object]:
    """Run a statement; the path in its rows is shown as `{t}`."""

    def run(spark: Any, path: str) -> object:
        rows = spark.sql(text.replace("{t}", f"delta.`{path}`"), values).collect()
        return [tuple(value.replace(path, "{t}") if isinstance(value, str) else value for value in row) for row in rows]

    return run


def _table(change: Callable[[DeltaTable, Any], object]) -> Callable[[Any, str], object]:
    def run(spark: Any, path: str) -> object:
        result = change(DeltaTable.forPath(spark, path), spark)
        return [tuple(row) for row in result.collect()] if hasattr(result, "collect") else None

    return run


def _source(spark: Any) -> Any:
    return spark.range(10, 14).selectExpr("id", "cast(id % 3 as int) AS p", "concat('new ', id) AS s").alias("s")


def _merge(clauses: Callable[[Any], Any], source: Callable[[Any], Any] = _source) -> Callable[[Any, str], object]:
    def run(table: DeltaTable, spark: Any) -> object:
        return clauses(table.alias("t").merge(source(spark), "t.id = s.id")).execute()

    return _table(run)


def _written(mode: str, **options: str) -> Callable[[Any, str], object]:
    def run(spark: Any, path: str) -> None:
        rows = spark.range(2).selectExpr("id", "cast(0 as int) AS p", "'w' AS s", "named_struct('a', 1, 'b', 'y') AS n")
        rows.write.format("delta").mode(mode).options(**options).save(path)

    return run


def _update_struct(table: DeltaTable, _spark: Any) -> None:
    table.alias("t").update("t.p = 1 AND t.id > 3", {"n.a": "t.n.a + 100", "s": sf.concat(sf.lit("<"), sf.col("t.s"))})


OPERATIONS = (
    Operation("append", _written("append")),
    Operation("overwrite", _written("overwrite")),
    Operation("ignore", _written("ignore")),
    Operation("replaceWhere", _written("overwrite", replaceWhere="p = 0")),
    Operation("replaceWhere on data", _written("overwrite", replaceWhere="id < 5"), (VECTORS,)),
    Operation("replaceUsing", _written("overwrite", replaceUsing="id")),
    Operation("dynamic overwrite", _written("overwrite", partitionOverwriteMode="dynamic")),
    Operation("delete", _table(lambda table, _: table.delete("id > 4 AND s LIKE '%5'"))),
    Operation("delete by vectors", _table(lambda table, _: table.delete(sf.col("id") == 3)), (VECTORS,)),
    Operation("delete partition", _table(lambda table, _: table.delete("p = 1"))),
    Operation("delete all", _table(lambda table, _: table.delete())),
    Operation("delete with feed", _table(lambda table, _: table.delete("id in (1, 2)")), (FEED,)),
    Operation("update", _table(lambda table, _: table.update("id % 2 = 0", {"s": "upper(s)"}))),
    Operation("update struct", _table(_update_struct), (VECTORS,)),
    Operation("update with feed", _table(lambda table, _: table.update("id < 3", {"p": "p + 1"})), (FEED, TRACKED)),
    Operation(
        "upsert", _merge(lambda m: m.whenMatchedUpdate(set={"s": "s.s"}).whenNotMatchedInsert(values={"id": "s.id", "p": "s.p"}))
    ),
    Operation(
        "merge with conditions",
        _merge(
            lambda m: (
                m.whenMatchedDelete("s.id = 10")
                .whenMatchedUpdate(set={"s": sf.upper(sf.col("s.s"))})
                .whenNotMatchedInsert("s.id = 13", {"id": "s.id", "s": "'only 13'"})
            )
        ),
        (VECTORS,),
    ),
    Operation(
        "merge not matched by source",
        _merge(lambda m: m.whenNotMatchedBySourceUpdate("t.id < 3", {"s": "'gone'"}).whenNotMatchedBySourceDelete("t.id > 8")),
        (VECTORS, FEED),
    ),
    Operation(
        "merge with schema evolution",
        _merge(
            lambda m: m.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll(),
            lambda spark: _source(spark).withColumn("more", sf.lit(1.5)).alias("s"),
        ),
        (FEED,),
    ),
    Operation("optimize", _table(lambda table, _: table.optimize().executeCompaction().select("metrics.numFilesAdded"))),
    Operation("z-order", _table(lambda table, _: table.optimize().executeZOrderBy("id").select("metrics.numFilesRemoved"))),
    Operation("vacuum", _table(lambda table, _: table.vacuum(200))),
    Operation("restore", _table(lambda table, _: table.restoreToVersion(1).select("num_of_files_after_restore"))),
    Operation("detail", _table(lambda table, _: table.detail().select("numFiles", "partitionColumns", "format"))),
    Operation("add feature", _table(lambda table, _: table.addFeatureSupport("deletionVectors"))),
    Operation("generate", _table(lambda table, _: table.generate("symlink_format_manifest"))),
    Operation("INSERT", _sql("INSERT INTO {t} VALUES (20, 1, 'sql', NULL), (21, 2, 'sql', NULL)")),
    Operation("INSERT by columns", _sql("INSERT INTO {t} (s, id) SELECT 'sql', 20")),
    Operation("INSERT OVERWRITE", _sql("INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 3")),
    Operation("INSERT REPLACE WHERE", _sql("INSERT INTO {t} REPLACE WHERE p = 1 SELECT 4L, 1, 'r', NULL")),
    Operation("UPDATE", _sql("UPDATE {t} SET s = CASE WHEN id = 1 THEN 'one' ELSE s END, p = 0 WHERE id < 4")),
    Operation("DELETE", _sql("DELETE FROM {t} WHERE id = 4")),
    Operation(
        "MERGE",
        _sql(
            "MERGE INTO {t} AS t USING (SELECT 3L AS id, 'm' AS s UNION ALL SELECT 50L, 'n') AS s ON t.id = s.id "
            "WHEN MATCHED AND s.s = 'm' THEN UPDATE SET s = s.s WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (s.id, 2, s.s)"
        ),
    ),
    Operation("OPTIMIZE", _sql("OPTIMIZE {t}"), (VECTORS,)),
    Operation("RESTORE", _sql("RESTORE TABLE {t} TO VERSION AS OF 1")),
    Operation("ADD COLUMNS", _sql("ALTER TABLE {t} ADD COLUMNS (z INT COMMENT 'new' AFTER p)")),
    Operation("ADD CONSTRAINT", _sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)")),
    Operation("SET TBLPROPERTIES", _sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")),
    Operation("UPDATE with parameters", _sql("UPDATE {t} SET s = :word WHERE id = :id", {"word": "it's", "id": 4})),
    Operation("DELETE with parameters", _sql("DELETE FROM {t} WHERE id = ? OR s = ?", [4, "text 5"])),
    Operation(
        "MERGE with parameters",
        _sql(
            "MERGE INTO {t} AS t USING (SELECT :id AS id) AS s ON t.id = s.id WHEN MATCHED AND t.p <> :p THEN UPDATE SET s = :word",
            {"id": 3, "p": 7, "word": None},
        ),
    ),
    Operation(
        "INSERT REPLACE WHERE with parameters",
        _sql("INSERT INTO {t} REPLACE WHERE p = :p SELECT :id, :p, 'r', NULL", {"p": 1, "id": 2**40}),
    ),
    Operation("COMMENT ON TABLE", _sql("COMMENT ON TABLE {t} IS 'it''s a table'")),
    Operation(
        "REPLACE COLUMNS", _sql("ALTER TABLE {t} REPLACE COLUMNS (s STRING, id BIGINT, p INT, n STRUCT<a INT, b STRING>, z INT)")
    ),
    Operation("SHOW CREATE TABLE", _sql("SHOW CREATE TABLE {t}")),
    Operation("TRUNCATE", _sql("TRUNCATE TABLE {t}")),
    Operation("SHOW PARTITIONS", _sql("SHOW PARTITIONS {t}")),
    Operation("DESCRIBE", _sql("DESCRIBE TABLE {t}")),
    Operation("SELECT", _sql("SELECT t.id, u.s FROM {t} AS t JOIN {t} AS u ON t.id = u.id + 1 WHERE t.p = 1 ORDER BY t.id")),
    Operation("SELECT VERSION AS OF", _sql("SELECT count(*) FROM {t} VERSION AS OF 1")),
    Operation("CTE", _sql("WITH low AS (SELECT * FROM {t} WHERE id < 3) SELECT max(id) FROM low")),
)
"""The properties are set before the second append, so that versions 1 and 2 have rows."""


def _made(path: Path, properties: tuple[str, ...]) -> str:
    table = Table.create(path, ROWS.schema, partition_by=["p"], properties=dict.fromkeys(properties, "true"))
    table.append(ROWS.slice(0, 8))
    table.append(ROWS.slice(8))
    return str(path)


def _state(path: str) -> tuple[object, ...]:
    """The rows, the history's operations and the findings of a check; and the rows of the feed, if it is on."""
    table = Table(path)
    rows = sorted(map(str, table.snapshot().scan().to_arrow().to_pylist()))
    operations = [(entry["operation"], entry["operationParameters"].get("mode")) for entry in table.history()]
    feed: list[str] = []
    if table.snapshot().config.properties.enable_change_data_feed and table.version() > 2:
        changes = table.changes(3).drop_columns(["_commit_timestamp"])
        feed = sorted(map(str, changes.to_pylist()))
    return rows, operations, feed, table.check()


# Over five seconds: an operation starts Python workers on the server.
@pytest.mark.parametrize("operation", sampled(OPERATIONS, 8), ids=str)
def test_an_operation_has_the_result_of_a_classic_session(connect: Any, spark: Any, tmp_path: Path, operation: Operation) -> None:
    here, there = _made(tmp_path / "classic", operation.properties), _made(tmp_path / "connect", operation.properties)
    expected = operation.run(spark, here)
    with remote():
        found = operation.run(connect, there)
    if operation.name != "OPTIMIZE":  # its row has times, and the path
        assert found == expected
    assert _state(there) == _state(here)


def test_the_server_has_no_tahoe(connect: Any) -> None:
    def look(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from importlib.util import find_spec

        yield pa.RecordBatch.from_pydict({"found": [str(find_spec("tahoe"))]})

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with remote():
        assert {row.found for row in connect.range(1).mapInArrow(look, "found string").collect()} == {"None"}


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
        path = _made(tmp_path / "t", ())
        before, files = _state(path), set(Path(path).rglob("*.parquet"))

        def stop(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with remote(), monkeypatch.context() as patch:
            patch.setattr(Table, "commit", stop)
            for run in (_written("append"), _table(lambda table, _: table.update("id < 3", {"s": "'x'"}))):
                with pytest.raises(KeyboardInterrupt):
                    run(connect, path)
        assert _state(path) == before
        assert set(Path(path).rglob("*.parquet")) > files  # written, and named by no commit

    def test_tasks_that_run_twice_write_each_row_once(
        self, connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = _made(tmp_path / "t", ())
        sent_whole = connect_rows.sent_whole
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

        monkeypatch.setattr(connect_rows, "sent_whole", sent_twice)
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
        path = _made(tmp_path / "t", properties)
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

    def test_a_merge_reads_and_conflicts_with_only_the_files_of_its_keys(
        self, connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = _made(tmp_path / "t", ())
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
        path = _made(tmp_path / "t", (FEED,))
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
            table.alias("t").merge(_source(spark), "t.id = s.id").whenMatchedUpdate(set={"s": "s.s"}).execute()
        case "OPTIMIZE":
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
def test_what_is_refused_changes_nothing(connect: Any, tmp_path: Path, text: str) -> None:
    path = _made(tmp_path / "t", ())
    with remote():
        word = "x" if ":id" in text else sf.upper(sf.lit("x"))
    values = {"word": word} if ":word" in text else None
    with remote(), pytest.raises((Unsupported, InvalidRequest)):
        connect.sql(text.replace("{t}", f"delta.`{path}`"), values)
    assert Table(path).version() == 2


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
    source = _made(tmp_path / "source", ())
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


def test_the_guide_runs(connect: Any, tmp_path: Path) -> None:
    page = (ROOT / "docs/guide/connect.md").read_text(encoding="utf-8")
    opened, used = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert 'tahoe.enable(SparkSession.builder.remote("' in opened, "as `connected` does, with the address of its own server"
    with remote():
        df = connect.createDataFrame([(1, "2026-01-01", "click"), (2, "2026-01-02", "view")], "id long, day string, kind string")
        updates = connect.createDataFrame(
            [(2, "2026-01-02", "tap"), (3, "2026-01-02", "tap")], "id long, day string, kind string"
        )
        exec(used.replace("/data/", f"{tmp_path}/"), {"spark": connect, "df": df, "updates": updates})
        connect.sql("DROP TABLE people")
    rows = Table(tmp_path / "events").to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["kind"]) for row in rows] == [(1, "tap"), (2, "tap"), (3, "tap")]
