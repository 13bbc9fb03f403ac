"""The native scan's queries of the log, and Spark's plans from the answers."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound
from tahoe.ops.rows.insert import WriteOptions
from tahoe.protocol.actions import AddFile, Metadata, Protocol
from tahoe.protocol.dv import descriptor_in_file, pack
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType
from tests.spark.scanned_tables import add, load, write_log

LONG, STRING, INTEGER = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("integer")


def files_read(frame: DataFrame) -> int:
    """How many files Spark's scans were given, counted in the executed plan."""
    frame.collect()
    metrics = []
    pending = [frame._jdf.queryExecution().executedPlan()]
    while pending:
        plan = pending.pop()
        if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
            pending.append(plan.executedPlan())
            continue
        if plan.getClass().getSimpleName() == "FileSourceScanExec":
            metrics.append(int(plan.metrics().apply("numFiles").value()))
        pending += [plan.children().apply(i) for i in range(plan.children().size())]
    return sum(metrics)


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten days, two regions, one file each, ordered ids."""
    path = str(tmp_path_factory.mktemp("sales") / "table")
    table = Table(path)
    for day in range(10):
        rows = pa.table(
            {
                "id": pa.array(range(day * 100, day * 100 + 100)),
                "day": pa.array([date(2026, 1, 1 + day)] * 100),
                "region": pa.array(["eu", "us"] * 50),
                "price": pa.array([Decimal(i) / 4 for i in range(100)], pa.decimal128(9, 2)),
            }
        )
        table.write(rows, WriteOptions("append", partition_by=("day", "region")))
    return path


class TestSkipping:
    @pytest.mark.parametrize(
        ("condition", "files", "rows"),
        [
            ("true", 20, 1000),
            ("day = '2026-01-03'", 2, 100),
            ("day = '2026-01-03' and region = 'eu'", 1, 50),
            ("day in ('2026-01-03', '2026-01-04')", 4, 200),
            ("day > '2026-01-08' or region = 'us'", 12, 600),
            ("not (region = 'eu')", 10, 500),
            ("region like 'e%'", 10, 500),
            ("region is null", 0, 0),
            ("upper(region) = 'EU'", 10, 500),
            ("year(day) = 2026 and dayofmonth(day) = 3", 2, 100),
            ("concat(region, cast(day as string)) = 'eu2026-01-05'", 1, 50),
            ("day = '2026-01-03' and id % 2 = 0", 2, 50),
            ("id < 150", 4, 150),
            ("id = 155", 2, 1),
            ("id in (5, 995)", 4, 2),
            ("id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)", 2, 12),
            ("id between 95 and 105 and region = 'eu'", 2, 5),
            ("price > 24.5", 10, 10),
            ("price >= 1000", 0, 0),
            # Of a condition on both, Spark hands over the part on data columns alone.
            ("id = 2 and region = 'eu' or id = 955", 4, 2),
            ("region = 'eu' and (id < 100 or price = 1000)", 1, 50),
        ],
    )
    def test_a_filter_reads_the_files_that_can_match_and_no_others(self, spark, sales, condition, files, rows):
        frame = load(spark, sales).where(condition)
        assert frame.count() == rows
        assert files_read(load(spark, sales).where(condition)) == files

    def test_a_join_prunes_partitions_by_the_other_side_at_run_time(self, spark, sales):
        other = spark.createDataFrame([("eu", 1)], "region string, x int").where("x = 1")
        joined = load(spark, sales).join(sf.broadcast(other), "region")
        assert joined.count() == 500

    def test_only_the_columns_asked_for_are_read(self, spark, sales):
        plan = load(spark, sales).select("id")._jdf.queryExecution().executedPlan().toString()
        assert "ReadSchema: struct<id:bigint>" in plan

    def test_the_optimizer_gets_the_size_of_the_live_files(self, spark, sales):
        frame = load(spark, sales)
        expected = sum(Table(sales).files()["size"].to_pylist())
        assert int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()) == expected

    def test_input_files_are_the_live_files(self, spark, sales):
        assert len(load(spark, sales).inputFiles()) == 20

    def test_input_files_are_those_that_the_filters_leave(self, spark, path):
        frame = spark.range(100).selectExpr("id", "id % 2 AS p", "concat('v', id) AS `odd name`")
        for low in (0, 50):
            part = frame.where(f"id >= {low} AND id < {low + 50}").coalesce(1)
            part.write.format("delta").mode("append").partitionBy("p").option("delta.columnMapping.mode", "name").save(path)
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
        spark.range(5).write.parquet(f"{path}-plain")
        table, plain = load(spark, path), spark.read.parquet(f"{path}-plain")
        assert set(table.where("p = 1").inputFiles()) < set(table.inputFiles())
        counts = {"true": 4, "p = 1": 2, "id = 99": 1, "id > 50 AND p = 0": 1, "id = 1000": 0}
        for condition, expected in counts.items():
            assert len(table.where(condition).inputFiles()) == expected, condition
        assert len(table.where("id > 50 AND p = 0").select("`odd name`").inputFiles()) == 1
        assert set(plain.inputFiles()) < set(plain.join(table.where("p = 1"), "id").inputFiles())
        assert len(table.where("p = 1").union(table.where("p = 0")).inputFiles()) == 4
        assert spark.range(3).inputFiles() == [] and len(spark.read.parquet(f"{path}-plain").inputFiles()) >= 1
        assert len(spark.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 0 WHERE p = 1").inputFiles()) == 1

    def test_two_scans_of_one_version_share_an_exchange(self, spark, sales):
        first = load(spark, sales).groupBy("id").count()
        other = load(spark, sales).groupBy("id").count()
        joined = first.union(other)
        joined.collect()
        assert "ReusedExchange" in joined._jdf.queryExecution().executedPlan().toString()

    def test_cached_rows_are_used_for_the_same_version_and_not_for_a_newer_one(self, spark, path):
        spark.range(3).write.format("delta").save(path)
        cached, of_then = load(spark, path).cache(), load(spark, path, versionAsOf="0").cache()
        assert cached.count() == of_then.count() == 3
        spark.range(2).write.format("delta").mode("append").save(path)
        assert load(spark, path, versionAsOf="0").count() == 3
        assert "InMemoryTableScan" in load(spark, path, versionAsOf="0")._jdf.queryExecution().executedPlan().toString()
        assert load(spark, path).count() == 5
        cached.unpersist()
        of_then.unpersist()

    def test_metadata_columns_are_there(self, spark, sales):
        actual = (
            load(spark, sales).where("id = 5").select("_metadata.file_name", "_metadata.row_index", "_metadata.file_size").first()
        )
        assert actual[0].endswith(".parquet")
        assert actual[2] > 0

    def test_ten_thousand_files_are_listed_in_a_few_seconds(self, spark, tmp_path):
        schema = StructType((StructField("id", LONG), StructField("part", STRING)))
        pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), tmp_path / "one.parquet")
        size = os.path.getsize(tmp_path / "one.parquet")
        adds = []
        for i in range(10_000):
            stats = json.dumps({"numRecords": 2, "minValues": {"id": i}, "maxValues": {"id": i}, "nullCount": {"id": 0}})
            adds.append(AddFile(f"part={i % 1000}/{i}.parquet", {"part": str(i % 1000)}, size, 1, True, stats))
        write_log(tmp_path, Protocol(1, 2), Metadata("x", schema.to_json(), ("part",)), *adds)
        frame = load(spark, str(tmp_path))
        assert len(frame.inputFiles()) == 10_000
        assert frame.where("id = 4321")._jdf.queryExecution().executedPlan() is not None


class TestPartitionValues:
    TYPES = (
        ("string", "ö / %2F=;'\"", "ö / %2F=;'\""),
        ("integer", "-7", -7),
        ("long", "9223372036854775807", 2**63 - 1),
        ("short", "-32768", -32768),
        ("byte", "127", 127),
        ("double", "1.5E10", 1.5e10),
        ("float", "0.5", 0.5),
        ("boolean", "true", True),
        ("date", "1582-10-04", date(1582, 10, 4)),
        ("binary", "ab", bytearray(b"ab")),
        ("timestamp_ntz", "2026-01-01 00:00:00.5", datetime(2026, 1, 1, 0, 0, 0, 500_000)),
    )

    @pytest.mark.parametrize(("name", "text", "value"), TYPES, ids=[name for name, _, _ in TYPES])
    def test_values_come_from_the_log_not_from_the_path(self, spark, tmp_path, name, text, value):
        schema = StructType((StructField("id", LONG), StructField("p", PrimitiveType(name))))
        features = frozenset(["timestampNtz"])
        protocol = Protocol(3, 7, features, features) if name == "timestamp_ntz" else Protocol(1, 2)
        first = add(tmp_path, "p=wrong/a.parquet", pa.table({"id": [1]}), partition_values={"p": text})
        null = add(tmp_path, "elsewhere/b.parquet", pa.table({"id": [2]}), partition_values={"p": None})
        empty = add(tmp_path, "c.parquet", pa.table({"id": [3]}), partition_values={"p": ""})
        write_log(tmp_path, protocol, Metadata("x", schema.to_json(), ("p",)), first, null, empty)
        frame = load(spark, str(tmp_path))
        assert {row.id: row.p for row in frame.collect()} == {1: value, 2: None, 3: None}
        assert [row.id for row in frame.where(sf.col("p") == sf.lit(value)).collect()] == [1]
        assert sorted(row.id for row in frame.where("p is null").collect()) == [2, 3]

    def test_a_timestamp_without_a_zone_is_the_sessions_local_time_and_filters_agree(self, spark, tmp_path):
        schema = StructType((StructField("id", LONG), StructField("p", PrimitiveType("timestamp"))))
        local = add(tmp_path, "a.parquet", pa.table({"id": [1]}), partition_values={"p": "2026-07-01 12:00:00"})
        utc = add(tmp_path, "b.parquet", pa.table({"id": [2]}), partition_values={"p": "2026-07-01T12:00:00.000000Z"})
        write_log(tmp_path, Protocol(1, 2), Metadata("x", schema.to_json(), ("p",)), local, utc)
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
        frame = load(session, str(tmp_path))
        assert [row.id for row in frame.where("p = timestamp'2026-07-01 12:00:00'").collect()] == [1]
        assert [row.id for row in frame.where("p = timestamp'2026-07-01 05:00:00'").collect()] == [2]
        assert files_read(load(session, str(tmp_path)).where("p = timestamp'2026-07-01 12:00:00'")) == 1

    def test_a_partition_value_that_is_none_of_its_type_is_an_error_not_a_null(self, spark, tmp_path):
        schema = StructType((StructField("id", LONG), StructField("p", INTEGER)))
        first = add(tmp_path, "a.parquet", pa.table({"id": [1]}), partition_values={"p": "seven"})
        write_log(tmp_path, Protocol(1, 2), Metadata("x", schema.to_json(), ("p",)), first)
        with pytest.raises(Exception, match="seven"):
            load(spark, str(tmp_path)).collect()


class TestDeletionVectors:
    @pytest.fixture
    def table(self, tmp_path) -> Path:
        """Three files of 100,000 rows in two partitions: one without a vector, one with some rows dead, one with the last row dead."""
        from pyroaring import BitMap64

        schema = StructType((StructField("id", LONG), StructField("p", STRING)))
        dead = [None, BitMap64([0, 31, 32, 63, 64, 65_535, 65_536, 99_998]), BitMap64([99_999])]
        data, placed = pack([bitmap for bitmap in dead if bitmap is not None])
        uuid = "b1b2c3d4-0000-4000-8000-000000000001"
        (tmp_path / f"deletion_vector_{uuid}.bin").write_bytes(data)
        vectors = [None, *(descriptor_in_file(uuid, place) for place in placed)]
        adds = []
        for i, vector in enumerate(vectors):
            rows = pa.table({"id": pa.array(range(i * 100_000, (i + 1) * 100_000))})
            value = "a" if i < 2 else "b"
            adds.append(
                add(
                    tmp_path,
                    f"{i}.parquet",
                    rows,
                    partition_values={"p": value},
                    stats='{"numRecords":100000}',
                    deletion_vector=vector,
                )
            )
        features = frozenset(["deletionVectors"])
        write_log(tmp_path, Protocol(3, 7, features, features), Metadata("x", schema.to_json(), ("p",)), *adds)
        return tmp_path

    def test_dead_rows_are_left_out(self, spark, table):
        frame = load(spark, str(table))
        assert frame.columns == ["id", "p"]
        assert frame.count() == 299_991
        dead = [100_000 + i for i in (0, 31, 32, 63, 64, 65_535, 65_536, 99_998)] + [299_999]
        assert frame.where(sf.col("id").isin(dead)).count() == 0
        assert frame.where(sf.col("id").isin([100_001, 100_030, 100_033, 199_999, 299_998])).count() == 5

    def test_they_are_left_out_by_the_row_wise_reader_too(self, spark, table):
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        session.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        assert load(session, str(table)).count() == 299_991

    def test_positions_are_those_of_the_file_however_a_scan_cuts_it(self, spark, tmp_path):
        from pyroaring import BitMap64

        from tahoe.protocol.dv import inline_descriptor

        pq.write_table(pa.table({"id": range(20_000)}), tmp_path / "a.parquet", row_group_size=1_000)
        size = os.path.getsize(tmp_path / "a.parquet")
        vector = inline_descriptor(BitMap64(range(0, 20_000, 7)))
        first = AddFile("a.parquet", {}, size, 1, True, '{"numRecords":20000}', deletion_vector=vector)
        features = frozenset(["deletionVectors"])
        schema = StructType((StructField("id", LONG),))
        write_log(tmp_path, Protocol(3, 7, features, features), Metadata("x", schema.to_json()), first)
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        session.conf.set("spark.sql.files.maxPartitionBytes", size // 5)
        session.conf.set("spark.sql.files.openCostInBytes", 1)
        frame = load(session, str(tmp_path)).where("id > 500")
        assert frame.rdd.getNumPartitions() >= 5
        assert [row.id for row in frame.orderBy("id").collect()] == [i for i in range(501, 20_000) if i % 7]

    def test_filters_still_reach_the_reader_and_the_log(self, spark, table):
        frame = load(spark, str(table)).where("p = 'b' and id > 299990")
        assert [row.id for row in frame.orderBy("id").collect()] == list(range(299_991, 299_999))
        assert files_read(load(spark, str(table)).where("p = 'b'")) == 1
        assert "GreaterThan(id,299990)" in frame._jdf.queryExecution().executedPlan().toString()

    def test_metadata_columns_are_there(self, spark, table):
        actual = load(spark, str(table)).where("id = 199999").select("_metadata.row_index", "_metadata.file_name").first()
        assert tuple(actual) == (99_999, "1.parquet")

    def test_only_the_vectors_of_the_files_read_are_fetched(self, spark, table):
        for file in table.glob("*.bin"):
            file.unlink()
        frame = load(spark, str(table))
        with pytest.raises(NotFound):
            frame.where("p = 'b'").collect()

    def test_a_damaged_vector_is_the_cores_error_without_java_in_it(self, spark, table):
        file = next(table.glob("*.bin"))
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        with pytest.raises(CorruptTable) as raised:
            load(spark, str(table)).where("p = 'b'").collect()
        assert raised.value.code == "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"
        assert "py4j" not in str(raised.value)
        assert raised.value.__cause__ is None


class TestColumnMapping:
    @pytest.fixture
    def mapped(self, tmp_path) -> Path:
        """Names with blanks and dots, renamed at every depth; names exchanged between two columns."""

        def named(name: str, physical: str, number: int, data_type) -> StructField:
            metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
            return StructField(name, data_type, True, metadata)

        inner = StructType((named("in side", "c4", 4, LONG), named("c4", "c5", 5, STRING), named("same", "same", 6, LONG)))
        schema = StructType(
            (
                named("a b.c", "c1", 1, LONG),
                named("c1", "c2", 2, LONG),
                named("nested", "c3", 3, inner),
                named("list", "c7", 7, ArrayType(StructType((named("x", "c8", 8, LONG),)))),
                named("map", "c9", 9, MapType(STRING, StructType((named("y", "c10", 10, LONG),)))),
                named("part", "c11", 11, STRING),
            )
        )
        rows = pa.table(
            {
                "c1": [1, 2],
                "c2": [10, 20],
                "c3": pa.array(
                    [{"c4": 5, "c5": "five", "same": 7}, None],
                    pa.struct({"c4": pa.int64(), "c5": pa.string(), "same": pa.int64()}),
                ),
                "c7": [[{"c8": 1}], []],
                "c9": pa.array([[("k", {"c10": 2})], []], pa.map_(pa.string(), pa.struct({"c10": pa.int64()}))),
            }
        )
        properties = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "11"}
        first = add(tmp_path, "xY/a.parquet", rows, partition_values={"c11": "p"})
        write_log(tmp_path, Protocol(2, 5), Metadata("x", schema.to_json(), ("part",), properties), first)
        return tmp_path

    def test_logical_names_and_values_at_every_depth(self, spark, mapped):
        first, second = load(spark, str(mapped)).orderBy("`a b.c`").collect()
        assert first.asDict(recursive=True) == {
            "a b.c": 1,
            "c1": 10,
            "nested": {"in side": 5, "c4": "five", "same": 7},
            "list": [{"x": 1}],
            "map": {"k": {"y": 2}},
            "part": "p",
        }
        assert second.nested is None

    def test_filters_on_renamed_and_nested_columns_reach_the_parquet_reader(self, spark, mapped):
        frame = load(spark, str(mapped)).where("`a b.c` = 1 and nested.`in side` = 5 and part = 'p'").select("nested.c4")
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert "EqualTo(c1,1)" in plan
        assert "EqualTo(c3.c4,5)" in plan
        assert "ReadSchema: struct<c1:bigint,c3:struct<c4:bigint,c5:string>>" in plan
        assert [row[0] for row in frame.collect()] == ["five"]

    def test_the_protocols_metadata_is_not_shown(self, spark, mapped):
        assert [field.metadata for field in load(spark, str(mapped)).schema.fields] == [{}] * 6

    def test_with_mode_id_fields_are_found_by_their_ids_whatever_their_names(self, spark, tmp_path):
        metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "physical"}
        schema = StructType((StructField("logical", LONG, True, metadata),))
        file_schema = pa.schema([pa.field("another", pa.int64(), metadata={"PARQUET:field_id": "1"})])
        first = add(tmp_path, "a.parquet", pa.table({"another": [7]}, schema=file_schema))
        properties = {"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "1"}
        write_log(tmp_path, Protocol(2, 5), Metadata("x", schema.to_json(), (), properties), first)
        assert [row.logical for row in load(spark, str(tmp_path)).collect()] == [7]
        assert spark.conf.get("spark.sql.parquet.fieldId.read.enabled") == "false"


class TestPlaces:
    def test_a_path_may_hold_any_characters(self, spark, tmp_path):
        path = str(tmp_path / "a b%20é;c" / "t:1,{x}[y]*?#")
        spark.range(4).selectExpr("id", "concat('v %2F=', id % 2) p").write.format("delta").partitionBy("p").save(path)
        spark.range(1).selectExpr("id", "'v %2F=0' p").write.format("delta").mode("append").save(path)
        assert load(spark, path).where("p = 'v %2F=0'").count() == 3
        assert load(spark, path + "@v0").count() == 4

    def test_files_whose_names_the_log_encodes_are_found(self, spark, tmp_path):
        first = add(tmp_path, "a b%é.parquet", pa.table({"id": [1]}))
        two = add(tmp_path, "sub dir/c.parquet", pa.table({"id": [2]}))
        schema = StructType((StructField("id", LONG),))
        encoded = [replace(first, path="a%20b%25é.parquet"), replace(two, path=f"file://{tmp_path}/sub%20dir/c.parquet")]
        write_log(tmp_path, Protocol(1, 2), Metadata("x", schema.to_json()), *encoded)
        assert sorted(row.id for row in load(spark, str(tmp_path)).collect()) == [1, 2]

    @pytest.mark.parametrize("path", ["../outside.parquet", "%2e%2e/outside.parquet", "file:///etc/passwd", "/etc/passwd"])
    def test_a_path_of_the_log_that_leaves_the_table_is_refused(self, spark, tmp_path, path):
        schema = StructType((StructField("id", LONG),))
        write_log(tmp_path / "table", Protocol(1, 2), Metadata("x", schema.to_json()), AddFile(path, {}, 10, 1, True))
        with pytest.raises(CorruptTable) as raised:
            load(spark, str(tmp_path / "table")).collect()
        assert raised.value.code == "TAHOE_PATH_OUTSIDE_TABLE"

    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_a_link_that_leaves_the_table_is_refused_and_one_that_stays_is_followed(self, spark, tmp_path, what):
        inside, outside = tmp_path / "table", tmp_path / "outside"
        schema = StructType((StructField("id", LONG),))
        good = add(inside, "real/a.parquet", pa.table({"id": [1]}))
        add(outside, "b.parquet", pa.table({"id": [2]}))
        (inside / "near.parquet").symlink_to(inside / "real" / "a.parquet")
        write_log(inside, Protocol(1, 2), Metadata("x", schema.to_json()), good, replace(good, path="near.parquet"))
        assert load(spark, str(inside)).count() == 2
        (inside / "far").symlink_to(outside) if what == "folder" else (inside / "far.parquet").symlink_to(outside / "b.parquet")
        name = "far/b.parquet" if what == "folder" else "far.parquet"
        write_log(inside, replace(good, path=name), version=1)
        with pytest.raises(CorruptTable) as raised:
            load(spark, str(inside)).count()
        assert raised.value.code == "TAHOE_PATH_OUTSIDE_TABLE"


class TestTimeTravel:
    @pytest.fixture
    def versions(self, spark, path) -> str:
        """Version v has v + 1 rows, and is from 12:0v UTC on the first of January 2026."""
        for version in range(3):
            spark.range(1).write.format("delta").mode("append").save(path)
            moment = datetime(2026, 1, 1, 12, version, tzinfo=UTC).timestamp()
            os.utime(Path(path) / "_delta_log" / f"{version:020d}.json", (moment, moment))
        return path

    @pytest.mark.parametrize(
        ("options", "suffix", "rows"),
        [
            ({}, "", 3),
            ({"versionAsOf": "0"}, "", 1),
            ({"VERSIONASOF": "1"}, "", 2),
            ({}, "@v1", 2),
            ({}, "@V0", 1),
            ({"timestampAsOf": "2026-01-01 12:01:30"}, "", 2),
            ({"timestampAsOf": "2026-01-01T12:01:30Z"}, "", 2),
            ({"timestampAsOf": "2026-01-01 13:01:30+01:00"}, "", 2),
            ({}, "@20260101120030000", 1),
        ],
    )
    def test_a_version_is_named_by_option_or_path(self, spark, versions, options, suffix, rows):
        assert load(spark, versions + suffix, **options).count() == rows

    def test_a_timestamp_without_a_zone_is_the_sessions_local_time(self, spark, versions):
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
        assert load(session, versions, timestampAsOf="2026-01-01 04:01:30").count() == 2

    @pytest.mark.parametrize(
        ("options", "suffix", "code"),
        [
            ({"versionAsOf": "7"}, "", "DELTA_VERSION_NOT_FOUND"),
            ({"timestampAsOf": "2026-01-02"}, "", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
            ({"timestampAsOf": "2025-01-02"}, "", "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
            ({"timestampAsOf": "yesterday-ish"}, "", "DELTA_TIMESTAMP_INVALID"),
            ({"timestampAsOf": "2026-01-01", "versionAsOf": "1"}, "", "DELTA_ONEOF_IN_TIMETRAVEL"),
            ({"versionAsOf": "1"}, "@v1", "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"),
            ({"versionAsOf": "one"}, "", "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE"),
            ({}, "-not-there", "PATH_NOT_FOUND"),
        ],
    )
    def test_missing_tables_are_refused_with_the_codes_of_the_reference(self, spark, versions, options, suffix, code):
        with pytest.raises((NotFound, InvalidRequest)) as raised:
            load(spark, versions + suffix, **options)
        assert raised.value.code == code

    def test_a_schema_of_ones_own_is_refused(self, spark, versions):
        with pytest.raises(InvalidRequest, match="its own schema"):
            spark.read.format("delta").schema("id long").load(versions)
