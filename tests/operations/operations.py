"""One hundred and fifty operations on a Delta table, by the API that classic sessions and those of Spark Connect share.

`outcome` runs one on a table of its own and describes everything that it left: its rows, the state of the tables, and the error, if it
raised one. The outcome has no paths, times and ids, so that it is equal on every kind of session and store.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.tables import DeltaTable

__all__ = [
    "FEED",
    "LEFT_ON_S3",
    "OPERATIONS",
    "ROWS",
    "VECTORS",
    "Operation",
    "made",
    "new_rows",
    "on_table",
    "outcome",
    "state",
    "written",
]

Run = Callable[[Any, str], object]


@dataclass(frozen=True)
class Operation:
    """An operation on a table of `ROWS`, partitioned by ``p``, of two appends.

    Args:
        run: takes a session and the table's path; its result is a part of the outcome. It may make a second table at ``{path}-u``.
        properties: of the table; they are set when it is created, so that versions 1 and 2 have rows.
    """

    name: str
    run: Run
    properties: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "p": pa.array([number % 3 for number in range(12)], pa.int32()),
        "s": pa.array([None if number == 7 else f"text {number}" for number in range(12)]),
        "n": pa.array([{"a": number, "b": "x"} for number in range(12)], pa.struct({"a": pa.int32(), "b": pa.string()})),
    }
)
VECTORS, FEED, TRACKED = "delta.enableDeletionVectors", "delta.enableChangeDataFeed", "delta.enableRowTracking"
MAPPED, WIDER, TIMED = "delta.columnMapping.mode", "delta.enableTypeWidening", "delta.enableInCommitTimestamps"
_VALUES = {MAPPED: "name"}


def made(path: str, properties: Sequence[str] = (), options: Mapping[str, str] | None = None) -> str:
    """Create the table of an operation; return its path."""
    settings = {name: _VALUES.get(name, "true") for name in properties}
    table = Table.create(path, ROWS.schema, partition_by=["p"], properties=settings, storage_options=options)
    table.append(ROWS.slice(0, 8))
    table.append(ROWS.slice(8))
    return path


def state(path: str, options: Mapping[str, str] | None = None) -> tuple[object, ...] | None:
    """Return the columns, the rows, the history's operations, the feed and the findings of a check; None if there is no table."""
    table = Table(path, storage_options=options)
    if not table.exists():
        return None
    rows = sorted(map(str, table.snapshot().scan().to_arrow().to_pylist()))
    operations = [(entry["operation"], (entry["operationParameters"] or {}).get("mode")) for entry in table.history()]
    feed: list[str] = []
    if table.snapshot().config.properties.enable_change_data_feed and table.version() > 2:
        changes = table.changes(3).drop_columns(["_commit_timestamp"])
        feed = sorted(map(str, changes.to_pylist()))
    return str(table.schema()), rows, operations, feed, table.check()


def outcome(operation: Operation, spark: Any, path: str, options: Mapping[str, str] | None = None) -> str:
    """Run an operation on a new table at a path; return its outcome as a text."""
    made(path, operation.properties, options)
    try:
        result = operation.run(spark, path)
    except Exception as error:  # noqa: BLE001 - an error is an outcome; `_code` raises one without a code
        result = "error", _code(error)
    texts = str((result, state(path, options), state(f"{path}-u", options)))
    for shown in (path, path.removeprefix("file://"), path.replace("s3://", "s3a://")):
        texts = texts.replace(shown, "{t}")
    return re.sub(r"col-[0-9a-f-]{36}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|part-\d{5}-\S+", "{id}", texts)


def _code(error: Exception) -> str:
    condition = getattr(error, "getCondition", getattr(error, "getErrorClass", None))
    code = getattr(error, "code", None) or (condition() if condition is not None else None)
    if code is None:
        raise error
    return str(code)


# -- ways of running -------------------------------------------------------------------------------------------------------------


def _sql(*texts: str, values: dict[str, object] | list[object] | None = None, columns: Sequence[str] = ()) -> Run:
    """Run statements on the table ``{t}`` and the second table ``{u}``; the rows of the last one are the result.

    Args:
        values: of its parameters.
        columns: that are compared; all of them without one.
    """

    def run(spark: Any, path: str) -> object:
        for text in texts:
            placed = text.replace("{t}", f"delta.`{path}`").replace("{u}", f"delta.`{path}-u`")
            frame = spark.sql(placed, values if text is texts[-1] else None)
        rows = (frame.select(*columns) if columns else frame).collect()
        return [tuple(row) for row in rows]

    return run


def on_table(change: Callable[[DeltaTable, Any], object]) -> Run:
    def run(spark: Any, path: str) -> object:
        result = change(DeltaTable.forPath(spark, path), spark)
        return sorted(str(tuple(row)) for row in result.collect()) if hasattr(result, "collect") else None

    return run


def _read(query: Callable[[Any], Any] = lambda frame: frame, **options: str) -> Run:
    def run(spark: Any, path: str) -> object:
        frame = query(spark.read.format("delta").options(**options).load(path))
        return sorted(str(tuple(row)) for row in frame.collect())

    return run


def new_rows(spark: Any) -> Any:
    return spark.range(10, 14).selectExpr("id", "cast(id % 3 as int) AS p", "concat('new ', id) AS s").alias("s")


def _with_more(spark: Any) -> Any:
    return new_rows(spark).withColumn("more", sf.lit(1.5)).alias("s")


def _merge(clauses: Callable[[Any], Any], source: Callable[[Any], Any] = new_rows, on: str = "t.id = s.id") -> Run:
    def run(table: DeltaTable, spark: Any) -> object:
        return clauses(table.alias("t").merge(source(spark), on)).execute()

    return on_table(run)


def _rows(spark: Any) -> Any:
    return spark.range(2).selectExpr("id", "cast(0 as int) AS p", "'w' AS s", "named_struct('a', 1, 'b', 'y') AS n")


def written(mode: str, suffix: str = "", frame: Callable[[Any], Any] = _rows, times: int = 1, **options: str) -> Run:
    def run(spark: Any, path: str) -> None:
        for _ in range(times):
            frame(spark).write.format("delta").mode(mode).options(**options).save(path + suffix)

    return run


def _partitioned(spark: Any, path: str) -> object:
    _rows(spark).write.format("delta").partitionBy("p").option("maxRecordsPerFile", 1).save(f"{path}-u")
    return DeltaTable.forPath(spark, f"{path}-u").detail().select("partitionColumns", "numFiles").collect()


def _written_to(how: Callable[[Any], object], suffix: str = "") -> Run:
    return lambda spark, path: how(_rows(spark).writeTo(f"delta.`{path}{suffix}`").using("delta"))


def _update_struct(table: DeltaTable, _spark: Any) -> None:
    table.alias("t").update("t.p = 1 AND t.id > 3", {"n.a": "t.n.a + 100", "s": sf.concat(sf.lit("<"), sf.col("t.s"))})


def _built(build: Callable[[Any, str], Any]) -> Run:
    def run(spark: Any, path: str) -> object:
        build(spark, f"{path}-u").execute()
        _sql("INSERT INTO {u} (id) VALUES (5), (6)")(spark, path)
        return _sql("SELECT * FROM {u} ORDER BY id")(spark, path)

    return run


def _columns_of(spark: Any, how: str) -> Any:
    return getattr(DeltaTable, how)(spark).addColumn("id", "BIGINT", nullable=False).addColumn("s", "STRING", comment="c")


def _generated(spark: Any, path: str) -> Any:
    builder = _columns_of(spark, "create").addColumn("twice", "BIGINT", generatedAlwaysAs="id * 2")
    return builder.location(path).property("delta.appendOnly", "true").partitionedBy("s")


def _streamed(write: Callable[[Any], Any] = lambda frame: frame, mode: str = "append", **options: str) -> Run:
    """Stream the table into the second one, twice."""

    def run(spark: Any, path: str) -> object:
        for _ in range(2):
            frame = write(spark.readStream.format("delta").options(**options).load(path))
            writer = frame.writeStream.format("delta").outputMode(mode).option("checkpointLocation", _checkpoints(path))
            writer.trigger(availableNow=True).start(f"{path}-u").awaitTermination()
        return _sql("SELECT count(*) FROM {u}")(spark, path)

    return run


def _checkpoints(path: str) -> str:
    """The folder of a stream's state: a local one, as Spark itself writes it."""
    return f"/dev/shm/tahoe-operations/{uuid.uuid5(uuid.NAMESPACE_URL, path)}"


def _version_in_path(spark: Any, path: str) -> object:
    return sorted(str(tuple(row)) for row in spark.read.format("delta").load(f"{path}@v1").collect())


def _temporary_view(spark: Any, path: str) -> object:
    spark.read.format("delta").load(path).createOrReplaceTempView("operations_view")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT id + 100, p, s, n FROM operations_view WHERE id < 2")
    return [tuple(row) for row in spark.sql("SELECT count(*), max(id) FROM operations_view").collect()]


def _restored_by_time(spark: Any, path: str) -> object:
    when = DeltaTable.forPath(spark, path).history().where("version = 1").select(sf.col("timestamp").cast("string")).first()[0]
    DeltaTable.forPath(spark, path).delete()
    return [
        row[0] for row in DeltaTable.forPath(spark, path).restoreToTimestamp(f"{when}").select("num_restored_files").collect()
    ]


# -- the operations --------------------------------------------------------------------------------------------------------------

_WRITERS = (
    Operation("append", written("append")),
    Operation("append with the feed", written("append"), (FEED,)),
    Operation("append once", written("append", times=2, txnAppId="app", txnVersion="1")),
    Operation("append small files", written("append", maxRecordsPerFile="1")),
    Operation("append with metadata", written("append", userMetadata="from a test")),
    Operation("append fewer columns", written("append", frame=lambda spark: _rows(spark).select("id", "p"))),
    Operation("append and merge schemas", written("append", frame=_with_more, mergeSchema="true")),
    Operation("append another type", written("append", frame=lambda spark: _rows(spark).withColumn("s", sf.array(sf.lit(1))))),
    Operation("append another column", written("append", frame=_with_more)),
    Operation("append tracked rows", written("append"), (TRACKED,)),
    Operation("append mapped columns", written("append"), (MAPPED,)),
    Operation("overwrite", written("overwrite")),
    Operation("overwrite the schema", written("overwrite", frame=new_rows, overwriteSchema="true")),
    Operation("overwrite with the feed", written("overwrite"), (FEED,)),
    Operation("ignore", written("ignore")),
    Operation("error if it exists", written("error")),
    Operation("new table", written("error", "-u")),
    Operation("new partitioned table", _partitioned),
    Operation("replaceWhere", written("overwrite", replaceWhere="p = 0")),
    Operation("replaceWhere with other rows", written("overwrite", replaceWhere="p = 1")),
    Operation("replaceWhere on data", written("overwrite", replaceWhere="id < 5"), (VECTORS,)),
    Operation("replaceWhere with the feed", written("overwrite", replaceWhere="p = 0"), (FEED,)),
    Operation("replaceUsing", written("overwrite", replaceUsing="id")),
    Operation("dynamic overwrite", written("overwrite", partitionOverwriteMode="dynamic")),
    Operation("writeTo append", _written_to(lambda writer: writer.append())),
    Operation("writeTo overwrite", _written_to(lambda writer: writer.overwrite(sf.col("p") == 0))),
    Operation("writeTo overwritePartitions", _written_to(lambda writer: writer.overwritePartitions())),
    Operation("writeTo create", _written_to(lambda writer: writer.create(), "-u")),
    Operation("writeTo createOrReplace", _written_to(lambda writer: writer.createOrReplace())),
    Operation("writeTo replace", _written_to(lambda writer: writer.replace())),
)

_ROW_CHANGES = (
    Operation("delete", on_table(lambda table, _: table.delete("id > 4 AND s LIKE '%5'"))),
    Operation("delete by vectors", on_table(lambda table, _: table.delete(sf.col("id") == 3)), (VECTORS,)),
    Operation("delete twice by vectors", on_table(lambda t, _: (t.delete("id = 3"), t.delete("id % 2 = 0"))), (VECTORS, FEED)),
    Operation("delete partition", on_table(lambda table, _: table.delete("p = 1"))),
    Operation("delete all", on_table(lambda table, _: table.delete())),
    Operation("delete nothing", on_table(lambda table, _: table.delete("id > 100"))),
    Operation("delete NULL", on_table(lambda table, _: table.delete("s IS NULL"))),
    Operation("delete by a field", on_table(lambda table, _: table.delete("n.a BETWEEN 2 AND 5"))),
    Operation("delete with feed", on_table(lambda table, _: table.delete("id in (1, 2)")), (FEED,)),
    Operation("delete tracked rows", on_table(lambda table, _: table.delete("id in (1, 2)")), (TRACKED,)),
    Operation("delete mapped columns", on_table(lambda table, _: table.delete("s = 'text 3'")), (MAPPED, VECTORS)),
    Operation("update", on_table(lambda table, _: table.update("id % 2 = 0", {"s": "upper(s)"}))),
    Operation("update all", on_table(lambda table, _: table.update(set={"s": sf.lit("all")}))),
    Operation("update struct", on_table(_update_struct), (VECTORS,)),
    Operation("update partition column", on_table(lambda table, _: table.update("id < 4", {"p": "p + 10"})), (VECTORS,)),
    Operation("update to NULL", on_table(lambda table, _: table.update("id = 1", {"s": "NULL", "n": "NULL"}))),
    Operation("update unknown column", on_table(lambda table, _: table.update("id = 1", {"nowhere": "1"}))),
    Operation("update with feed", on_table(lambda table, _: table.update("id < 3", {"p": "p + 1"})), (FEED, TRACKED)),
    Operation("INSERT", _sql("INSERT INTO {t} VALUES (20, 1, 'sql', NULL), (21, 2, 'sql', NULL)")),
    Operation("INSERT by columns", _sql("INSERT INTO {t} (s, id) SELECT 'sql', 20")),
    Operation("INSERT BY NAME", _sql("INSERT INTO {t} BY NAME SELECT 'sql' AS s, 20L AS id, 1 AS p")),
    Operation("INSERT PARTITION", _sql("INSERT INTO {t} PARTITION (p = 9) SELECT 20L, 'sql', NULL")),
    Operation("INSERT too few columns", _sql("INSERT INTO {t} (s, id) SELECT 'sql'")),
    Operation("INSERT OVERWRITE", _sql("INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 3")),
    Operation("INSERT OVERWRITE PARTITION", _sql("INSERT OVERWRITE {t} PARTITION (p = 1) SELECT 20L, 'sql', NULL")),
    Operation("INSERT REPLACE WHERE", _sql("INSERT INTO {t} REPLACE WHERE p = 1 SELECT 4L, 1, 'r', NULL")),
    Operation(
        "INSERT with parameters",
        _sql("INSERT INTO {t} REPLACE WHERE p = :p SELECT :id, :p, 'r', NULL", values={"p": 1, "id": 2**40}),
    ),
    Operation("UPDATE", _sql("UPDATE {t} SET s = CASE WHEN id = 1 THEN 'one' ELSE s END, p = 0 WHERE id < 4")),
    Operation("UPDATE a field", _sql("UPDATE {t} AS t SET t.n.b = 'field' WHERE t.id IN (2, 3)"), (VECTORS,)),
    Operation("UPDATE with parameters", _sql("UPDATE {t} SET s = :word WHERE id = :id", values={"word": "it's", "id": 4})),
    Operation("DELETE", _sql("DELETE FROM {t} WHERE id = 4")),
    Operation("DELETE with an alias", _sql("DELETE FROM {t} AS x WHERE x.id = 4 OR x.s IS NULL"), (VECTORS,)),
    Operation("DELETE with parameters", _sql("DELETE FROM {t} WHERE id = ? OR s = ?", values=[4, "text 5"])),
    Operation("DELETE unknown column", _sql("DELETE FROM {t} WHERE nowhere = 4")),
)

_MERGES = (
    Operation(
        "merge", _merge(lambda m: m.whenMatchedUpdate(set={"s": "s.s"}).whenNotMatchedInsert(values={"id": "s.id", "p": "s.p"}))
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
        _merge(lambda m: m.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll(), _with_more),
        (FEED,),
    ),
    Operation("merge inserts only", _merge(lambda m: m.whenNotMatchedInsert(values={"id": "s.id", "p": "s.p", "s": "s.s"}))),
    Operation("merge deletes only", _merge(lambda m: m.whenMatchedDelete()), (FEED,)),
    Operation("merge updates tracked rows", _merge(lambda m: m.whenMatchedUpdate(set={"s": "s.s"})), (TRACKED, VECTORS)),
    Operation("merge mapped columns", _merge(lambda m: m.whenMatchedUpdate(set={"n.b": "s.s"})), (MAPPED,)),
    Operation("merge changes partitions", _merge(lambda m: m.whenMatchedUpdate(set={"p": "s.p + 5"})), (VECTORS,)),
    Operation("merge matches nothing", _merge(lambda m: m.whenMatchedDelete(), on="t.id = s.id + 100")),
    Operation(
        "merge with two matches",
        _merge(lambda m: m.whenMatchedUpdate(set={"s": "s.s"}), on="t.p = s.p AND t.id > 9 AND s.id > 9"),
    ),
    Operation("merge by a range", _merge(lambda m: m.whenMatchedDelete(), on="t.id > s.id - 1 AND t.id < s.id + 1")),
    Operation(
        "merge of a table with itself",
        _sql("MERGE INTO {t} AS t USING {t} AS s ON t.id = s.id AND s.p = 0 WHEN MATCHED THEN UPDATE SET s = concat(s.s, '!')"),
    ),
    Operation(
        "MERGE",
        _sql(
            "MERGE INTO {t} AS t USING (SELECT 3L AS id, 'm' AS s UNION ALL SELECT 50L, 'n') AS s ON t.id = s.id "
            "WHEN MATCHED AND s.s = 'm' THEN UPDATE SET s = s.s WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (s.id, 2, s.s)"
        ),
    ),
    Operation(
        "MERGE of all columns",
        _sql(
            "MERGE INTO {t} AS t USING (SELECT id + 6 AS id, p, 'm' AS s, n FROM {t}) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
        (VECTORS,),
    ),
    Operation(
        "MERGE WITH SCHEMA EVOLUTION",
        _sql(
            "MERGE WITH SCHEMA EVOLUTION INTO {t} AS t USING (SELECT 3L AS id, 0 AS p, true AS flag) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
    ),
    Operation(
        "MERGE BY SOURCE",
        _sql(
            "MERGE INTO {t} AS t USING (SELECT 3L AS id) AS s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.p = 1 THEN DELETE"
        ),
    ),
    Operation(
        "MERGE with parameters",
        _sql(
            "MERGE INTO {t} AS t USING (SELECT :id AS id) AS s ON t.id = s.id WHEN MATCHED AND t.p <> :p THEN UPDATE SET s = :word",
            values={"id": 3, "p": 7, "word": None},
        ),
    ),
    Operation("MERGE unknown column", _sql("MERGE INTO {t} t USING {t} s ON t.id = s.nowhere WHEN MATCHED THEN DELETE")),
)

_UPKEEP = (
    Operation("optimize", on_table(lambda table, _: table.optimize().executeCompaction().select("metrics.numFilesAdded"))),
    Operation(
        "optimize a partition",
        on_table(lambda t, _: t.optimize().where("p = 1").executeCompaction().select("metrics.numFilesAdded")),
    ),
    Operation("optimize vectors", on_table(lambda t, _: (t.delete("id < 3"), t.optimize().executeCompaction())[0]), (VECTORS,)),
    Operation("z-order", on_table(lambda table, _: table.optimize().executeZOrderBy("id").select("metrics.numFilesRemoved"))),
    Operation("OPTIMIZE", _sql("OPTIMIZE {t}", columns=["metrics.numFilesRemoved"]), (VECTORS,)),
    Operation("OPTIMIZE WHERE", _sql("OPTIMIZE {t} WHERE p = 2", columns=["metrics.numFilesRemoved"])),
    Operation("OPTIMIZE ZORDER", _sql("OPTIMIZE {t} ZORDER BY (id, s)", columns=["metrics.numFilesAdded"])),
    Operation(
        "REORG PURGE",
        _sql("DELETE FROM {t} WHERE id = 3", "REORG TABLE {t} APPLY (PURGE)", columns=["metrics.numFilesAdded"]),
        (VECTORS,),
    ),
    Operation("vacuum", on_table(lambda table, _: table.vacuum(200))),
    Operation("VACUUM DRY RUN", _sql("DELETE FROM {t}", "VACUUM {t} RETAIN 200 HOURS DRY RUN")),
    Operation("VACUUM too short", _sql("VACUUM {t} RETAIN 1 HOURS")),
    Operation("restore", on_table(lambda table, _: table.restoreToVersion(1).select("num_of_files_after_restore"))),
    Operation("restore by time", _restored_by_time, (TIMED,)),
    Operation("RESTORE", _sql("RESTORE TABLE {t} TO VERSION AS OF 1")),
    Operation("RESTORE a missing version", _sql("RESTORE TABLE {t} TO VERSION AS OF 99")),
    Operation("generate", on_table(lambda table, _: table.generate("symlink_format_manifest"))),
    Operation("clone", on_table(lambda table, spark: table.clone(_url(table) + "-u", isShallow=True) and None)),
    Operation("SHALLOW CLONE", _sql("CREATE TABLE {u} SHALLOW CLONE {t}", "SELECT count(*) FROM {u}")),
    Operation(
        "SHALLOW CLONE of a version", _sql("CREATE TABLE {u} SHALLOW CLONE {t} VERSION AS OF 1", "SELECT max(id) FROM {u}")
    ),
    Operation("changed clone", _sql("CREATE TABLE {u} SHALLOW CLONE {t}", "UPDATE {u} SET s = 'clone' WHERE id < 3"), (VECTORS,)),
    Operation("detail", on_table(lambda table, _: table.detail().select("numFiles", "partitionColumns", "format"))),
    Operation("history", on_table(lambda table, _: table.history(2).select("version", "operation", "isBlindAppend"))),
    Operation("add feature", on_table(lambda table, _: table.addFeatureSupport("deletionVectors"))),
    Operation("drop feature", on_table(lambda table, _: table.dropFeatureSupport("deletionVectors")), (VECTORS,)),
    Operation("upgrade protocol", on_table(lambda table, _: table.upgradeTableProtocol(3, 7))),
)


def _url(table: DeltaTable) -> str:
    return str(table.detail().select("location").first()[0])


_DEFINITIONS = (
    Operation("ADD COLUMNS", _sql("ALTER TABLE {t} ADD COLUMNS (z INT COMMENT 'new' AFTER p)")),
    Operation("ADD COLUMN in a struct", _sql("ALTER TABLE {t} ADD COLUMN n.c DOUBLE FIRST")),
    Operation("ADD COLUMN twice", _sql("ALTER TABLE {t} ADD COLUMN s STRING")),
    Operation(
        "RENAME COLUMN", _sql("ALTER TABLE {t} RENAME COLUMN s TO text", "UPDATE {t} SET text = 'new' WHERE id = 1"), (MAPPED,)
    ),
    Operation("RENAME COLUMN unmapped", _sql("ALTER TABLE {t} RENAME COLUMN s TO text")),
    Operation("DROP COLUMN", _sql("ALTER TABLE {t} DROP COLUMN s", "INSERT INTO {t} VALUES (20, 1, NULL)"), (MAPPED,)),
    Operation("ALTER COLUMN COMMENT", _sql("ALTER TABLE {t} ALTER COLUMN s COMMENT 'words'")),
    Operation("ALTER COLUMN FIRST", _sql("ALTER TABLE {t} ALTER COLUMN s FIRST")),
    Operation(
        "ALTER COLUMN TYPE",
        _sql("ALTER TABLE {t} ALTER COLUMN p TYPE BIGINT", "INSERT INTO {t} VALUES (1, 5000000000, 's', NULL)"),
        (WIDER,),
    ),
    Operation("ALTER COLUMN TYPE narrower", _sql("ALTER TABLE {t} ALTER COLUMN id TYPE INT")),
    Operation(
        "SET NOT NULL", _sql("ALTER TABLE {t} ALTER COLUMN id SET NOT NULL", "INSERT INTO {t} VALUES (NULL, 1, 's', NULL)")
    ),
    Operation("SET NOT NULL with NULLs", _sql("ALTER TABLE {t} ALTER COLUMN s SET NOT NULL")),
    Operation(
        "REPLACE COLUMNS", _sql("ALTER TABLE {t} REPLACE COLUMNS (s STRING, id BIGINT, p INT, n STRUCT<a INT, b STRING>, z INT)")
    ),
    Operation("ADD CONSTRAINT", _sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)")),
    Operation("ADD violated CONSTRAINT", _sql("ALTER TABLE {t} ADD CONSTRAINT small CHECK (id < 5)")),
    Operation(
        "violate CONSTRAINT", _sql("ALTER TABLE {t} ADD CONSTRAINT small CHECK (id < 50)", "INSERT INTO {t} (id) VALUES (60)")
    ),
    Operation("DROP CONSTRAINT", _sql("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id < 50)", "ALTER TABLE {t} DROP CONSTRAINT c")),
    Operation(
        "SET TBLPROPERTIES",
        _sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true')", "DELETE FROM {t} WHERE id = 1"),
    ),
    Operation(
        "UNSET TBLPROPERTIES", _sql("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')", "ALTER TABLE {t} UNSET TBLPROPERTIES ('a')")
    ),
    Operation("COMMENT ON TABLE", _sql("COMMENT ON TABLE {t} IS 'it''s a table'")),
    Operation("TRUNCATE", _sql("TRUNCATE TABLE {t}")),
    Operation(
        "CREATE TABLE",
        _sql(
            "CREATE TABLE {u} (id INT, s STRING DEFAULT 'd') USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
            "INSERT INTO {u} (id) VALUES (1)",
        ),
    ),
    Operation("CREATE TABLE that exists", _sql("CREATE TABLE {t} (id INT) USING delta")),
    Operation(
        "CREATE TABLE IF NOT EXISTS", _sql("CREATE TABLE IF NOT EXISTS {u} (id INT) USING delta", "INSERT INTO {u} VALUES (1)")
    ),
    Operation(
        "CREATE TABLE AS SELECT",
        _sql("CREATE TABLE {u} USING delta PARTITIONED BY (p) AS SELECT id, p, n.a FROM {t} WHERE id > 5"),
    ),
    Operation("CREATE OR REPLACE TABLE", _sql("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS one")),
    Operation(
        "CLUSTER BY",
        _sql(
            "CREATE TABLE {u} (id INT, s STRING) USING delta CLUSTER BY (id)",
            "INSERT INTO {u} VALUES (2, 'b'), (1, 'a')",
            "OPTIMIZE {u}",
            columns=["metrics.numFilesAdded"],
        ),
    ),
    Operation(
        "char and varchar",
        _sql(
            "CREATE TABLE {u} (c CHAR(3), v VARCHAR(2)) USING delta",
            "INSERT INTO {u} VALUES ('a', 'bc')",
            "INSERT INTO {u} VALUES ('a', 'bcd')",
        ),
    ),
    Operation("builder", _built(lambda spark, path: _columns_of(spark, "create").location(path))),
    Operation("builder with generated column", _built(_generated)),
    Operation("builder, if not exists", _built(lambda spark, path: _columns_of(spark, "createIfNotExists").location(path))),
    Operation("builder, replace", _built(lambda spark, path: _columns_of(spark, "createOrReplace").location(path).comment("c"))),
)

_READS = (
    Operation("read", _read()),
    Operation("read a filter", _read(lambda frame: frame.where("id > 3 AND p = 1").select("s", "n.a"))),
    Operation("read an aggregate", _read(lambda frame: frame.groupBy("p").agg(sf.sum("id"), sf.count("s")))),
    Operation(
        "read vectors", on_table(lambda table, _: (table.delete("id % 2 = 0"), table.toDF().select("id", "s"))[1]), (VECTORS,)
    ),
    Operation("read mapped columns", _read(lambda frame: frame.where("s = 'text 3'")), (MAPPED,)),
    Operation("versionAsOf", _read(lambda frame: frame.select("id"), versionAsOf="1")),
    Operation("versionAsOf a missing version", _read(versionAsOf="99")),
    Operation("version in the path", _version_in_path),
    Operation(
        "change feed",
        _read(lambda f: f.select("id", "_change_type", "_commit_version"), readChangeFeed="true", startingVersion="1"),
        (FEED,),
    ),
    Operation("change feed that is off", _read(readChangeFeed="true", startingVersion="1")),
    Operation("SELECT", _sql("SELECT t.id, u.s FROM {t} AS t JOIN {t} AS u ON t.id = u.id + 1 WHERE t.p = 1 ORDER BY t.id")),
    Operation("SELECT VERSION AS OF", _sql("SELECT count(*) FROM {t} VERSION AS OF 1")),
    Operation(
        "SELECT from a subquery", _sql("SELECT max(id) FROM (SELECT id FROM {t} WHERE p IN (SELECT p FROM {t} WHERE id = 4))")
    ),
    Operation("CTE", _sql("WITH low AS (SELECT * FROM {t} WHERE id < 3) SELECT max(id) FROM low")),
    Operation("temporary view", _temporary_view),
    Operation("SHOW PARTITIONS", _sql("SHOW PARTITIONS {t}")),
    Operation("SHOW COLUMNS", _sql("SHOW COLUMNS IN {t}")),
    Operation("SHOW TBLPROPERTIES", _sql("SHOW TBLPROPERTIES {t} ('delta.minReaderVersion')")),
    Operation("SHOW CREATE TABLE", _sql("SHOW CREATE TABLE {t}")),
    Operation("DESCRIBE", _sql("DESCRIBE TABLE {t}")),
    Operation("DESCRIBE HISTORY", _sql("DESCRIBE HISTORY {t}", columns=["version", "operation"])),
    Operation("DESCRIBE DETAIL", _sql("DESCRIBE DETAIL {t}", columns=["numFiles", "minReaderVersion", "tableFeatures"])),
    Operation("stream", _streamed()),
    Operation("stream of small batches", _streamed(maxFilesPerTrigger="1")),
    Operation(
        "stream of changes",
        _streamed(lambda f: f.select("id", "_change_type"), readChangeFeed="true", startingVersion="0"),
        (FEED,),
    ),
    Operation("stream of an aggregate", _streamed(lambda frame: frame.groupBy("p").count(), "complete")),
)

OPERATIONS = (*_WRITERS, *_ROW_CHANGES, *_MERGES, *_UPKEEP, *_DEFINITIONS, *_READS)

LEFT_ON_S3 = {"vacuum": "as in delta-spark, its start and end are not in the history unless a setting says so"}
"""Operations with another outcome on S3, with the reason."""
