"""The portable data source: without Tahoe's code in classic sessions, on Spark Connect, and on executors of their own."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, MetadataChangedException, Unsupported
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.spark.executors.data_source_tasks import filled_in
from tahoe.spark.jvm.translate import to_spark_schema
from tahoe.spark.portable.data_source import DeltaDataSource
from tahoe.store.log_store import Refused
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import WrappedStore
from tests.spark.feature_tables import FEATURES_ON_CONNECT, SAMPLE, features_on_connect, tables_with
from tests.spark.own_spark import CONNECTED, run

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    ADMITS = True
except ImportError:  # before Spark 4.2
    ADMITS = False


def filled_table(path: str, metadata: dict[str, dict[str, object]]) -> Table:
    types = {"n": "long", "s": "string", "at": "timestamp", "twice": "long", "v": "string"}
    columns = (StructField(name, PrimitiveType(kind), True, metadata.get(name, {})) for name, kind in types.items())
    return Table.create(path, StructType(tuple(columns)), properties={"delta.feature.allowColumnDefaults": "supported"})


class TestInAClassicSession:
    def test_append_and_overwrite_and_versions(self, plain, path):
        frame = plain.range(10).selectExpr("id", "cast(id % 2 as int) p", "named_struct('a', array(id)) s")
        frame.write.format("delta").mode("append").save(path)
        frame.write.format("delta").mode("append").save(path)
        frame.write.format("delta").mode("overwrite").save(path)
        assert plain.read.format("delta").load(path).count() == 10
        assert plain.read.format("delta").option("versionAsOf", 1).load(path).count() == 20
        assert plain.read.format("delta").load(path + "@v0").count() == 10
        assert sorted(map(str, plain.read.format("delta").load(path).collect())) == sorted(map(str, frame.collect()))
        assert [row["operationParameters"]["mode"] for row in Table(path).history()] == ["Overwrite", "Append", "Append"]
        assert Table(path).check() == []

    def test_options_of_a_new_table(self, plain, path):
        writer = plain.range(4).selectExpr("id", "id % 2 p").write.format("delta").mode("append")
        writer.option("partitionBy", "p").option("delta.checkpointInterval", "3").option("userMetadata", "why").save(path)
        snapshot = Table(path).snapshot()
        assert snapshot.partition_columns == ("p",)
        assert snapshot.metadata.configuration == {"delta.checkpointInterval": "3"}
        assert Table(path).history()[0]["userMetadata"] == "why"

    def test_merge_schema_and_idempotent_writes(self, plain, path):
        plain.range(1).write.format("delta").mode("append").save(path)
        for _ in range(2):
            frame = plain.sql("select 2L id, 'x' more")
            options = {"mergeSchema": "true", "txnAppId": "job", "txnVersion": "1"}
            frame.write.format("delta").mode("append").options(**options).save(path)
        assert {tuple(row) for row in plain.read.format("delta").load(path).collect()} == {(0, None), (2, "x")}

    @pytest.mark.parametrize(
        ("condition", "rows"),
        [
            ("id > 90", 9),
            ("id = 5 and p = 1", 1),
            ("p in (0, 7)", 50),
            ("p is null", 0),
            ("not (p = 1)", 50),
            ("t like 't9%'", 11),
            ("d = date'2026-01-06'", 1),
            ("z >= timestamp'1970-01-01 00:01:30'", 10),
        ],
    )
    def test_filters_that_are_pushed_change_no_answer(self, plain, tmp_path_factory, condition, rows):
        path = str(tmp_path_factory.getbasetemp() / "pushed")
        if not Table(path).exists():
            frame = plain.range(100).selectExpr(
                "id",
                "cast(id % 2 as int) p",
                "concat('t', id) t",
                "date_add(date'2026-01-01', cast(id as int)) d",
                "timestamp_seconds(id) z",
            )
            frame.write.format("delta").mode("append").option("partitionBy", "p").save(path)
        assert plain.read.format("delta").option("pushFilters", "true:1").load(path).where(condition).count() == rows

    def test_pushed_filters_of_a_user_are_refused_as_spark_would_share_their_files(self, plain, path):
        plain.range(3).write.format("delta").mode("append").save(path)
        with pytest.raises(Exception, match="TAHOE_OPTION_NOT_SUPPORTED"):
            plain.read.format("delta").option("pushFilters", "true").load(path).count()

    def test_a_write_that_does_not_fit_leaves_the_table_as_it_was(self, plain, path):
        plain.range(1).write.format("delta").mode("append").save(path)
        with pytest.raises(Exception, match="DELTA_METADATA_MISMATCH"):
            plain.sql("select 'x' other").write.format("delta").mode("append").save(path)
        assert Table(path).version() == 0

    def test_columns_that_the_table_computes_or_has_a_default_for_are_filled_in(self, plain, path):
        keys = {"s": {"CURRENT_DEFAULT": "'new'"}, "at": {"CURRENT_DEFAULT": "current_timestamp()"}}
        table = filled_table(path, {**keys, "twice": {"delta.generationExpression": "n * 2"}, "v": {DECLARED_TYPE: "varchar(2)"}})
        plain.range(3).selectExpr("id n", "'ab  ' v").repartition(2).write.format("delta").mode("append").save(path)
        plain.sql("select 9L n, 'given' s").write.format("delta").mode("append").save(path)
        rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["n"])
        expected = [("new", 2 * n, "ab") for n in range(3)] + [("given", 18, None)]
        assert [(row["s"], row["twice"], row["v"]) for row in rows] == expected
        assert len({row["at"] for row in rows[:3]}) == 1
        with pytest.raises(Exception, match="EXCEED_CHAR_VARCHAR_LIMIT"):
            plain.sql("select 1L n, 'abc' v").write.format("delta").mode("append").save(path)

    def test_tasks_that_know_nothing_of_each_other_number_rows_of_identity_columns(self, plain, path):
        numbered = {"n": identity_metadata(100, -10, allow_explicit=False), "twice": {"delta.generationExpression": "n * 2"}}
        table = filled_table(path, {**numbered, "s": {"CURRENT_DEFAULT": "'new'"}})
        frame = plain.range(1000, numPartitions=7).selectExpr("cast(id as string) v")
        for _ in range(2):
            frame.write.format("delta").mode("append").save(path)
        table.append(pa.table({"v": ["the core's"]}))
        rows = table.to_arrow().to_pylist()
        values = [row["n"] for row in rows]
        assert len(set(values)) == len(values) == 2001
        assert max(values) == 100
        assert all((100 - value) % 10 == 0 for value in values)
        assert all(row["twice"] == 2 * row["n"] and row["s"] == "new" for row in rows)
        assert rows[values.index(min(values))]["v"] == "the core's"
        assert table.schema().field("n").metadata["delta.identity.highWaterMark"] == min(values)
        with pytest.raises(Exception, match="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"):
            plain.sql("select 5L n").write.format("delta").mode("append").save(path)

    def test_of_two_writers_that_number_rows_at_once_the_later_one_is_reported(self, plain, path):
        table = filled_table(path, {"n": identity_metadata(1, 1, allow_explicit=True)})
        writer = DeltaDataSource({"path": path}).writer(plain.createDataFrame([], "v string").schema, overwrite=False)
        table.append(pa.table({"v": ["first"]}))
        with pytest.raises(MetadataChangedException, match="another writer numbered rows"):
            writer.commit([])
        assert table.to_arrow()["n"].to_pylist() == [1]

    def test_a_stream_numbers_rows_from_where_the_last_batch_left_off(self, plain, path, tmp_path):
        table = filled_table(path, {"n": identity_metadata(1, 1, allow_explicit=False)})
        plain.range(50).selectExpr("cast(id as string) v").repartition(3).write.format("delta").mode("append").save(f"{path}2")
        for _ in range(2):
            stream = plain.readStream.format("delta").load(f"{path}2").writeStream.format("delta")
            query = stream.option("checkpointLocation", str(tmp_path / "at")).trigger(availableNow=True).start(path)
            query.awaitTermination(120)
            plain.sql("select 'more' v").write.format("delta").mode("append").save(f"{path}2")
        values = table.to_arrow()["n"].to_pylist()
        assert len(set(values)) == len(values) == 51
        assert table.schema().field("n").metadata["delta.identity.highWaterMark"] == max(values)

    @pytest.mark.parametrize(
        ("column", "metadata", "in_batch", "in_stream"),
        [
            ("s", {"CURRENT_DEFAULT": "'new'"}, True, True),
            ("s", {"CURRENT_DEFAULT": "NULL"}, True, True),
            ("at", {"CURRENT_DEFAULT": "current_timestamp()"}, True, False),
            ("at", {"CURRENT_DEFAULT": "current_date()"}, False, False),
            ("at", {"CURRENT_DEFAULT": "timestamp'2020-01-01 00:00:00'"}, False, False),
            ("at", {"CURRENT_DEFAULT": "timestamp'2020-01-01 00:00:00Z'"}, True, True),
        ],
    )
    def test_values_that_tasks_fill_in_and_those_that_are_refused(self, path, column, metadata, in_batch, in_stream):
        config = filled_table(path, {column: metadata}).snapshot().config
        for now, allowed in ((1, in_batch), (None, in_stream)):
            assert filled_in(config, [column.upper()], now).defaults.defaults == ()
            if allowed:
                assert [item.column.name for item in filled_in(config, ["twice"], now).defaults.defaults] == [column]
                continue
            with pytest.raises(Unsupported, match="TAHOE_COLUMN_NOT_FILLED_IN") as caught:
                filled_in(config, ["twice"], now)
            assert caught.value.facts["column"] == column

    @pytest.mark.parametrize("option", [{"replaceWhere": "id = 1"}, {"replaceOn": "id = 1"}, {"replaceUsing": "id"}])
    def test_unsupported_operations_are_named(self, plain, path, option):
        with pytest.raises(Exception, match=next(iter(option))):
            plain.range(1).write.format("delta").mode("overwrite").options(**option).save(path)


ON_CONNECT = """
path = sys.argv[1]
frame = spark.range(100).selectExpr("id", "cast(id % 2 as int) p")
frame.write.format("delta").mode("append").save(path)
print("= read", spark.read.format("delta").load(path).count())
spark.sql(f"CREATE TABLE earlier (id BIGINT, p INT) USING delta LOCATION '{path}'")  # by a client without Tahoe
assert tahoe.enable(spark) is spark
frame.write.format("delta").mode("append").save(path)
print("= filtered", spark.read.format("delta").load(path).where("id >= 90").count())
print("= version", spark.read.format("delta").option("versionAsOf", 0).load(path).count())
coordinator = tahoe.SqlCoordinator("sqlite:///" + path + "-c.db")
managed = tahoe.Table.create(
    path + "3", tahoe.Table(path).schema(), properties={"delta.feature.catalogManaged": "supported"}, coordinator=coordinator
)
frame.write.format("delta").mode("append").option("coordinator", coordinator.shown_url).save(path + "3")
known = spark.read.format("delta").option("coordinator", coordinator.shown_url).load(path + "3").count()
print("= managed", known, managed.version())
from tahoe.tables import DeltaTable
table = DeltaTable.forPath(spark, path)
print("= table", table.toDF().count(), table.history().count(), table.detail().first().numFiles > 0)
DeltaTable.create(spark).location(path + "2").addColumn("x", "int").execute()
print("= made", spark.read.format("delta").load(path + "2").columns)
from tahoe.tables import IdentityGenerator
DeltaTable.create(spark).location(path + "4").addColumn("n", "bigint", generatedAlwaysAs=IdentityGenerator(1, 1)).addColumn(
    "id", "bigint"
).execute()
spark.range(10).repartition(2).write.format("delta").mode("append").save(path + "4")
print("= numbered", spark.read.format("delta").load(path + "4").select("n").distinct().count())
from tahoe.spark.executors.shard_encoder import SparkShards
from tahoe.api.process import UNIFORM_RUNTIME
class Watched(SparkShards):
    def encode(self, order, parts):
        for found in super().encode(order, parts):
            yield found
            print("= encoded there", found.number)
table = tahoe.Table(path)
table.uniform.upgrade()
table.uniform.sync()
UNIFORM_RUNTIME.shards = Watched(spark, least_files=1)
print("= converted", table.uniform.sync(rebuild=True).files_added == len(table.snapshot().files()))
print("= by name", spark.table("earlier").count() == spark.read.format("delta").load(path).count())
spark.sql(f"CREATE TABLE plain (id INT) USING parquet LOCATION '{path}-plain'")
spark.sql("ALTER TABLE plain SET TBLPROPERTIES ('a' = 'b')")
frame.limit(1).write.format("parquet").option("path", path + "-other").saveAsTable("other")
print("= others", spark.sql("DESCRIBE plain").count(), spark.table("other").count())
"""
STREAMS_ON_CONNECT = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import tahoe
folder, java_options = sys.argv[1:3]
builder = SparkSession.builder.remote("local[2]").config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.ui.showConsoleProgress", "false")
spark = builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate()
admits = hasattr(__import__("pyspark.sql.streaming", fromlist=["x"]), "datasource")
source = tahoe.Table(folder + "/source")
def rows():
    reader = spark.readStream.format("delta")
    return (reader.option("maxFilesPerTrigger", 1) if admits else reader).load(folder + "/source")
def run(frame, target, mode="append", **options):
    writer = frame.writeStream.format("delta").outputMode(mode).options(**options)
    try:
        query = writer.trigger(availableNow=True).start(folder + "/" + target)
        query.awaitTermination(600)
        return query
    except Exception as error:
        return error
at = folder + "/at"
first = run(rows(), "copy", partitionBy="p", checkpointLocation=at)
print("= copied", spark.read.format("delta").load(folder + "/copy").count())
last = max(int(one.name) for one in Path(at, "commits").glob("[0-9]*"))
for name in (f"{last}", f".{last}.crc"):
    Path(at, "commits", name).unlink(missing_ok=True)
spark.createDataFrame([(100, 1)], "id long, p int").write.format("delta").mode("append").save(folder + "/source")
again = run(rows(), "copy", checkpointLocation=at)
if not admits:  # one batch is a run there, and that was the one done again
    again = run(rows(), "copy", checkpointLocation=at)
print("= each once", sorted(row.id for row in spark.read.format("delta").load(folder + "/copy").collect()), again.id == first.id)
if sys.argv[3] == "more":
    run(rows().groupBy("p").count(), "counts", "complete", checkpointLocation=folder + "/counting")
    print("= counted", sorted(map(tuple, spark.read.format("delta").load(folder + "/counts").collect())))
    spark.conf.set("spark.sql.streaming.checkpointLocation", folder + "/any")
    print("= refused", "TAHOE_NO_CHECKPOINT_LOCATION" in str(run(rows(), "copy")))
    feed = spark.readStream.format("delta").option("readChangeFeed", "true").load(folder + "/source")
    run(feed.select("id", "_change_type"), "changes", checkpointLocation=folder + "/f")
    source.delete("id = 0")
    run(feed.select("id", "_change_type"), "changes", checkpointLocation=folder + "/f")
    print("= changes", sorted(map(tuple, spark.read.format("delta").load(folder + "/changes").collect())))
    tracks = spark.readStream.format("delta").option("schemaTrackingLocation", folder + "/f/s").load(folder + "/source")
    print("= refused", "option 'schemaTrackingLocation'" in str(run(tracks, "copy", checkpointLocation=folder + "/f")))
"""

ON_A_CLUSTER = """
import sys
from pyspark.sql import SparkSession
import tahoe
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
path, java_options = sys.argv[1:]
builder = builder.config("spark.driver.extraJavaOptions", java_options).config("spark.executor.extraJavaOptions", java_options)
plain = builder.config("spark.executor.memory", "512m").config("spark.sql.shuffle.partitions", "2").getOrCreate()
frame = plain.range(1000).repartition(2).selectExpr("id", "cast(id % 2 as int) p")
frame.write.format("delta").mode("append").save(path)
print("= portable", plain.read.format("delta").load(path).count())
spark = tahoe.enable(plain)
frame = spark.range(1000).repartition(2).selectExpr("id", "cast(id % 2 as int) p")
frame.write.format("delta").mode("append").save(path)
print("= native", spark.read.format("delta").load(path).count())
from tahoe.protocol.actions import AddFile
from tahoe.protocol.dv import inline_descriptor
from tahoe.txn.transaction import Operation
from tahoe.api.table import Table
from pyroaring import BitMap64
from dataclasses import replace
table = Table(path)
table.set_properties({"delta.enableDeletionVectors": "true"})
transaction = table.begin()
add = table.snapshot().scan().add_files()[0]
transaction.stage(add.remove(1), replace(add, deletion_vector=inline_descriptor(BitMap64([0, 1, 2]))))
table.commit(transaction, Operation("DELETE"))
print("= alive", spark.read.format("delta").load(path).count())
import tahoe.spark.write.writer
tahoe.spark.write.writer._FOOTERS_ON_DRIVER = 0
spark.range(10).repartition(2).selectExpr("id", "cast(id % 2 as int) p").write.format("delta").mode("append").save(path)
print("= footers", spark.read.format("delta").load(path).count())
"""


# Over five seconds: a server of Spark Connect of its own, and a Python process for each kind of step that Spark asks of a data source.
@pytest.mark.own_jvm
@pytest.mark.long
def test_on_spark_connect_reading_and_appending_need_no_code(path, tmp_path, java_options):
    folder = tables_with(tmp_path / "features", SAMPLE)
    assert run(CONNECTED + FEATURES_ON_CONNECT + ON_CONNECT, path, java_options, folder) == [
        *features_on_connect(tmp_path / "features", SAMPLE),
        "= read 100",
        "= filtered 20",
        "= version 100",
        "= managed 100 1",
        "= table 200 2 True",
        "= made ['x']",
        "= numbered 10",
        "= encoded there 0",
        "= converted True",
        "= by name True",
        "= others 1 1",
    ]
    assert Table(path).check() == []


def streams_on_connect(folder: Path, java_options: str, further: str, seconds: float = 240) -> list[str]:
    source = Table(str(folder / "source"))
    source.append(pa.table({"id": pa.array([0, 1]), "p": pa.array([0, 1], pa.int32())}))
    source.set_properties({"delta.enableChangeDataFeed": "true"})
    reported = run(STREAMS_ON_CONNECT, str(folder), java_options, further, seconds=seconds)
    copy = Table(str(folder / "copy"))
    assert copy.check() == [] and copy.snapshot().partition_columns == ("p",)
    numbers = [item["operationParameters"]["epochId"] for item in copy.history()]
    assert numbers == ["1", "0"]
    return reported


COPIED = ["= copied 2", "= each once [0, 1, 100] True"]


# Over five seconds: as above, and a query asks a Python process for each step of each batch.
@pytest.mark.soak
def test_on_spark_connect_a_table_is_a_source_and_a_sink_of_streams(tmp_path, java_options):
    assert streams_on_connect(tmp_path, java_options, "no more") == COPIED


@pytest.mark.soak
@pytest.mark.timeout(1500)  # seven queries, which take minutes where others load the machine
def test_streams_of_counts_and_refusals_over_spark_connect(tmp_path, java_options):
    changes = "= changes [(0, 'delete'), (0, 'insert'), (1, 'insert'), (100, 'insert')]"
    counted = ["= counted [(0, 1), (1, 2)]", "= refused True", changes, "= refused True"]
    assert streams_on_connect(tmp_path, java_options, "more", seconds=1200) == [*COPIED, *counted]


def test_a_table_whose_commits_a_coordinator_ratifies_is_read_and_appended_to_where_it_is_named(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's calls of the source, in Spark's order, in processes that know only their pickled arguments."""
    url = f"sqlite:///{tmp_path}/c.db"
    coordinator = SqlCoordinator(url)
    properties = {"delta.feature.catalogManaged": "supported", "delta.enableChangeDataFeed": "true"}
    table = Table.create(path, pa.schema({"id": pa.int64()}), properties=properties, coordinator=coordinator)
    table.append(pa.table({"id": [1, 2]}))
    unpublished = Table("", store=WithoutPublishing(open_store(path)), coordinator=coordinator)
    unpublished.append(pa.table({"id": [3]}))
    named = {"path": path, "coordinator": url}

    def read(options: dict[str, str]) -> list[int]:
        source = DeltaDataSource(options)
        reader = source.reader(pickle.loads(cloudpickle.dumps(source)).schema())
        there = pickle.loads(cloudpickle.dumps(reader))
        batches = (there.read(pickle.loads(cloudpickle.dumps(part))) for part in reader.partitions())
        return sorted(number for part in batches for batch in part for number in batch.column("id").to_pylist())

    assert (read(named), read({**named, "versionAsOf": "1"})) == ([1, 2, 3], [1, 2])
    assert read({**named, "readChangeFeed": "true", "startingVersion": "2"}) == [3]
    writer = DeltaDataSource(named).writer(to_spark_schema(table.schema()), overwrite=False)
    assert url.encode() in cloudpickle.dumps(writer)
    message = pickle.loads(cloudpickle.dumps(writer)).write(iter(pa.table({"id": [4]}).to_batches()))
    pickle.loads(cloudpickle.dumps(writer)).commit([message])
    assert table.version() == 3 and read(named) == [1, 2, 3, 4] and table.check(strict=True) == []
    # The processes of Spark's server may have it in their environment, with a password even; a plan may not.
    for use in (
        lambda: read({"path": path}),
        lambda: DeltaDataSource({"path": path}).writer(to_spark_schema(table.schema()), False),
    ):
        with pytest.raises(Unsupported, match="no coordinator was named"):
            use()
    with pytest.raises(InvalidRequest, match="contains a password") as caught:
        read({"path": path, "coordinator": "postgresql://me:s3cr3t@127.0.0.1:1/db"})
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(Unsupported, match="A stream of the portable data source"):
        DeltaDataSource(named).streamReader(to_spark_schema(table.schema()))
    monkeypatch.setenv("TAHOE_COORDINATOR", url)
    assert read({"path": path}) == [1, 2, 3, 4]


class WithoutPublishing(WrappedStore):
    """Storage that takes no commit at its place in the log."""

    def _call(self, method: str, name: str, run: Any) -> Any:
        is_commit = method == "put_if_absent" and name.startswith("_delta_log/0")
        return Refused("not now") if is_commit else run()


@pytest.mark.parametrize("start", [{}, {"startingVersion": "2"}, {"startingVersion": "latest"}], ids=["all", "from 2", "latest"])
def test_a_stream_of_changes_sends_the_rows_of_the_table_to_workers(path: str, start: dict[str, str]) -> None:
    """Spark's calls of the reader, in Spark's order, without Spark."""
    table = Table.create(
        path,
        pa.schema({"id": pa.int64(), "p": pa.string()}),
        partition_by=["p"],
        properties={
            "delta.enableChangeDataFeed": "true",
            "delta.enableDeletionVectors": "true",
            "delta.columnMapping.mode": "name",
        },
    )
    table.append(pa.table({"id": [1, 2, 3], "p": ["a", "a", None]}))
    table.append(pa.table({"id": [4], "p": ["b c/d"]}))
    source = DeltaDataSource({"path": path, "readChangeFeed": "true", **start})
    schema = source.schema()
    assert schema.names == ["id", "p", "_change_type", "_commit_version", "_commit_timestamp"]
    reader = source.streamReader(schema)
    option: Any = start.get("startingVersion")
    reported = table.tail(option if option in (None, "latest") else int(option), read_change_feed=True, follow=True)
    place, first = reader.initialOffset(), True
    for change in (lambda: None, lambda: table.delete("id = 2"), lambda: table.update({"id": "id + 10"}, "p is null")):
        change()
        limits = (place, ReadAllAvailable()) if ADMITS else ()
        end = reader.latestOffset(*limits)
        actual = []
        for part in reader.partitions(place, end):
            # Workers get both as bytes.
            batches = pickle.loads(cloudpickle.dumps(reader)).read(pickle.loads(cloudpickle.dumps(part)))
            actual += [row for batch in batches for row in batch.to_pylist()]
        if first and start.get("startingVersion") == "latest" and not ADMITS:
            assert actual == []  # nothing has come yet
        expected = next(reported).to_arrow().to_pylist()
        assert actual == expected
        place, first = json.loads(json.dumps(end)), False
    assert [row["_change_type"] for row in actual] == ["update_preimage", "update_postimage"]


# Over five seconds: a driver, a worker's two executors and their Python processes start; only this shows the data that executors receive.
@pytest.mark.soak
@pytest.mark.own_jvm
def test_on_executors_of_their_own_both_ways_work(path, java_options):
    assert run(ON_A_CLUSTER, path, java_options) == [
        "= portable 1000",
        "= native 2000",
        "= alive 1997",
        "= footers 2007",
    ]
    assert Table(path).check() == []
