"""The schema of a write against that of its table: matched, merged, overwritten or refused; and physical names of columns."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, SchemaMismatch, TahoeWarning, Unsupported
from tahoe.protocol.actions import AddFile
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.settings.warn_once import reset_warnings
from tests.spark.written import actions, data_files, ids, info, load, write


class TestSchemas:
    @pytest.fixture
    def table(self, spark, path) -> str:
        write(spark.createDataFrame([(1, "a", (1, "x"))], "id long, name string, s struct<a: int, b: string>"), path)
        return path

    def test_columns_are_matched_by_name_without_regard_to_case(self, spark, table):
        write(spark.createDataFrame([("b", 2)], "NAME string, Id long"), table)
        assert [tuple(row) for row in load(spark, table).orderBy("id").select("id", "name").collect()] == [(1, "a"), (2, "b")]

    def test_fields_of_structs_are_matched_too_and_missing_ones_are_null(self, spark, table):
        write(spark.createDataFrame([(2, ("y", 5))], "id long, s struct<B: string, A: int>"), table)
        write(spark.createDataFrame([(3, ("z",)), (4, None)], "id long, s struct<b: string>"), table)
        rows = {row.id: row.s and tuple(row.s) for row in load(spark, table).collect()}
        assert rows == {1: (1, "x"), 2: (5, "y"), 3: (None, "z"), 4: None}

    def test_elements_of_arrays_and_maps_too(self, spark, path):
        write(spark.sql("select array(struct(1 as a, 'x' as b)) l, map('k', struct(1 as a)) m"), path)
        write(spark.sql("select array(struct('y' as B, 2 as A)) l, map('k', struct(5S as a)) m"), path)
        rows = sorted(str(row.asDict(recursive=True)) for row in load(spark, path).collect())
        assert rows == [
            "{'l': [{'a': 1, 'b': 'x'}], 'm': {'k': {'a': 1}}}",
            "{'l': [{'a': 2, 'b': 'y'}], 'm': {'k': {'a': 5}}}",
        ]

    def test_an_unknown_column_is_refused_with_its_name_its_type_and_the_remedy(self, spark, table):
        with pytest.raises(SchemaMismatch) as raised:
            write(spark.createDataFrame([(2, 1.5)], "id long, price double"), table)
        assert raised.value.code == "DELTA_METADATA_MISMATCH"
        for part in ("price", "double", "mergeSchema"):
            assert part in str(raised.value)

    def test_a_type_that_cannot_be_stored_is_refused_with_both_types(self, spark, table):
        with pytest.raises(SchemaMismatch) as raised:
            write(spark.createDataFrame([("one",)], "id string"), table)
        for part in ("id", "long", "string", "Cast"):
            assert part in str(raised.value)
        assert Table(table).version() == 0

    def test_only_types_that_parquet_stores_alike_are_cast(self, spark, path):
        write(spark.createDataFrame([(1,)], "id int"), path)
        write(spark.createDataFrame([(2,)], "id short"), path)
        write(spark.createDataFrame([(3,)], "id byte"), path)
        write(spark.sql("SELECT NULL AS id"), path)
        for mode in ("append", "overwrite"):
            for query in ("3L", "'4'", "5.0D", "6.00BD", "DATE'2026-01-01'", "true", "array(1)"):
                with pytest.raises(AnalysisException, match="DELTA_FAILED_TO_MERGE_FIELDS"):
                    write(spark.sql(f"SELECT {query} AS id"), path, mode, mergeSchema="true")
                with pytest.raises(SchemaMismatch, match="Cast the data to integer"):
                    write(spark.sql(f"SELECT {query} AS ID"), path, mode)
        assert Table(path).version() == 3
        assert [row.id for row in load(spark, path).orderBy("id").collect()] == [None, 1, 2, 3]

    @pytest.mark.parametrize(
        ("columns", "written"),
        [
            ("struct<a:long>", "named_struct('a', 1)"),
            ("array<long>", "array(1)"),
            ("map<string,long>", "map('a', 1)"),
            ("decimal(10,2)", "1.0BD"),
            ("timestamp", "DATE'2026-01-01'"),
            ("timestamp", "timestamp_ntz'2026-01-01 00:00:00'"),
            ("string", "1"),
            ("long", "1"),
        ],
    )
    def test_types_inside_of_types_must_be_the_same_too(self, spark, path, columns, written):
        write(spark.createDataFrame([], f"v {columns}"), path)
        with pytest.raises(SchemaMismatch, match="DELTA_FAILED_TO_MERGE_FIELDS"):
            write(spark.sql(f"SELECT {written} AS v"), path)

    def test_a_column_of_bytes_takes_integers_with_merge_schema_only(self, spark, path):
        write(spark.createDataFrame([], "v byte"), path)
        with pytest.raises(SchemaMismatch, match=r"DELTA_METADATA_MISMATCH.*set mergeSchema to make the column integer"):
            write(spark.sql("SELECT 300 AS v"), path)
        write(spark.sql("SELECT 300 AS v"), path, mergeSchema="true")
        assert load(spark, path).collect() == [(300,)]
        assert load(spark, path).schema.simpleString() == "struct<v:int>"

    @pytest.mark.filterwarnings("ignore::tahoe.exceptions.TahoeWarning")
    def test_replace_where_means_nothing_to_an_append_but_stands_in_the_history(self, spark, path):
        write(spark.range(3), path)
        write(spark.range(3, 5), path, "append", replaceWhere="id < 2")
        assert ids(spark, path) == [0, 1, 2, 3, 4]
        assert info(path, 1)["operationParameters"] == {"mode": "Append", "partitionBy": "[]", "predicate": "id < 2"}

    def test_merge_schema_adds_columns_and_fields(self, spark, table):
        new = spark.sql("select 2L id, 1.5D price, struct(7 as a, true as c) s")
        write(new, table, mergeSchema="true")
        assert load(spark, table).schema.simpleString() == (
            "struct<id:bigint,name:string,s:struct<a:int,b:string,c:boolean>,price:double>"
        )
        assert load(spark, table).where("id = 2").first().asDict(recursive=True) == {
            "id": 2,
            "name": None,
            "s": {"a": 7, "b": None, "c": True},
            "price": 1.5,
        }

    def test_the_sessions_setting_merges_too(self, spark, table):
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        session.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
        write(session.sql("select 2L id, 3 more"), table)
        assert load(spark, table).columns == ["id", "name", "s", "more"]

    def test_overwrite_schema_replaces_it(self, spark, table):
        with pytest.raises(SchemaMismatch):
            write(spark.sql("select 'one' id"), table, "overwrite")
        write(spark.sql("select 'one' id"), table, "overwrite", overwriteSchema="true")
        assert load(spark, table).schema.simpleString() == "struct<id:string>"
        assert load(spark, table).first().id == "one"

    def test_not_null_is_enforced_at_every_depth(self, spark, path):
        inner = StructType((StructField("b", PrimitiveType("long"), False),))
        schema = StructType((StructField("id", PrimitiveType("long"), False), StructField("s", inner)))
        Table.create(path, schema)
        write(spark.sql("select 1L id, named_struct('b', 2L) s"), path)
        for query, column in (
            ("select cast(null as bigint) id, named_struct('b', 1L) s", "id"),
            ("select 2L id, cast(null as struct<b: bigint>) s", "s.b"),
            ("select 3L id, named_struct('b', cast(null as bigint)) s", "s.b"),
        ):
            with pytest.raises(InvalidRequest) as raised:
                write(spark.sql(query), path)
            assert raised.value.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
            assert f"'{column}'" in str(raised.value)
        with pytest.raises(SchemaMismatch) as missing:
            write(spark.sql("select named_struct('b', 1L) s"), path)
        assert missing.value.code == "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"
        assert ids(spark, path) == [1]

    def test_a_void_column_is_in_the_schema_and_not_in_the_files(self, spark, path):
        write(spark.sql("select 1L id, null nothing"), path)
        assert load(spark, path).schema.simpleString() == "struct<id:bigint,nothing:void>"
        assert pq.read_schema(next(data_files(path))).names == ["id"]
        write(spark.sql("select 2L id, 'now' nothing"), path, mergeSchema="true")
        assert {row.id: row.nothing for row in load(spark, path).collect()} == {1: None, 2: "now"}

    def test_types_that_delta_does_not_have_are_refused_by_column(self, spark, path):
        with pytest.raises(Unsupported, match="'span'"):
            write(spark.sql("select interval '1' day span"), path)
        assert not Table(path).exists()

    def test_timestamps_are_stored_in_microseconds_with_statistics(self, spark, path):
        moment = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
        write(spark.createDataFrame([(moment, moment.replace(tzinfo=None))], "t timestamp, n timestamp_ntz"), path)
        stored = pq.ParquetFile(next(data_files(path))).schema_arrow
        assert stored.field("t").type == pa.timestamp("us", "UTC")
        assert "t" in json.loads(actions(path, 0, AddFile)[0].stats)["minValues"]
        assert load(spark, path).selectExpr("t = timestamp'2026-01-02 03:04:05.678901'", "cast(n as string)").first() == (
            True,
            "2026-01-02 03:04:05.678901",
        )

    def test_every_value_comes_back(self, spark, path):
        frame = spark.sql(
            """select 1Y b, 2S s, 3 i, 4L l, 1.5F f, 2.5D d, 1.25BD n, true t, 'x' c, X'00FF' y, date'0001-01-01' a,
            timestamp'9999-12-31 23:59:59.999999' z, timestamp_ntz'1582-10-10 00:00:00' o, array(1, null) e,
            map('k', array(null, 'v')) m, named_struct('p', named_struct('q', 1)) r, cast('NaN' as double) x, cast(null as string) u"""
        )
        write(frame, path)
        assert str(load(spark, path).collect()) == str(frame.collect())  # as text, for NaN is not itself in Python
        assert Table(path).to_arrow().num_rows == 1


class TestColumnMapping:
    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_files_have_physical_names_and_ids_and_read_back(self, spark, path, mode):
        frame = spark.sql("select 1L `a b`, named_struct('x,y', 2, 'l', array(named_struct('=', 3))) s, map('k', 4) m, 'p1' p")
        frame.write.format("delta").partitionBy("p").option("delta.columnMapping.mode", mode).save(path)
        schema = Table(path).schema()
        stored = pq.read_schema(next(data_files(path)))
        assert stored.names == [column.physical_name for column in schema if column.name != "p"]
        assert [int(f.metadata[b"PARQUET:field_id"]) for f in stored] == [c.field_id for c in schema if c.name != "p"]
        inner = stored.field(1).type.field(0)
        assert int(inner.metadata[b"PARQUET:field_id"]) == schema.field("s").data_type.fields[0].field_id
        assert load(spark, path).collect() == frame.collect()
        write(frame, path)
        assert load(spark, path).where("s.`x,y` = 2 and p = 'p1'").count() == 2
        assert Table(path).to_arrow().num_rows == 2
        assert {name for add in actions(path, 0, AddFile) for name in add.partition_values} == {schema.field("p").physical_name}

    def test_names_that_parquet_cannot_have_need_column_mapping(self, spark, path):
        with pytest.raises(InvalidRequest) as raised:
            write(spark.sql("select 1 `a b`"), path)
        assert raised.value.code == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"

    def test_with_iceberg_compat_partition_columns_and_nested_ids_are_in_the_files(self, spark, path):
        frame = spark.sql(
            "select 1L id, array(array(1)) l, map('k', array(named_struct('f', 1))) m, named_struct('in', array('x')) s, 'a' p"
        )
        options = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
        frame.write.format("delta").partitionBy("p").options(**options).save(path)
        schema = Table(path).schema()
        file = next(data_files(path))
        stored = pq.ParquetFile(file)
        assert stored.schema_arrow.names[-1] == schema.field("p").physical_name
        text = str(stored.schema)
        assert "field_id=-1 element" not in text
        assert "field_id=-1 key " not in text.replace("\n", " ")
        nested = schema.field("l").metadata["delta.columnMapping.nested.ids"]
        element = stored.schema_arrow.field(1).type.value_field
        name = schema.field("l").physical_name
        assert int(element.metadata[b"PARQUET:field_id"]) == nested[f"{name}.element"]
        assert int(element.type.value_field.metadata[b"PARQUET:field_id"]) == nested[f"{name}.element.element"]
        add = actions(path, 0, AddFile)[0]
        assert add.size == file.stat().st_size
        assert stored.read().num_rows == 1
        assert load(spark, path).collect() == frame.collect()
        assert Table(path).check() == []


def test_insert_into_keeps_the_schema_and_warns(spark, path):
    reset_warnings()
    spark.sql(f"CREATE TABLE kept (id INT) USING delta LOCATION '{path}'")
    try:
        rows = spark.sql("SELECT '5' AS id").write.mode("overwrite")
        with pytest.warns(TahoeWarning, match="insertInto keeps the schema of the table"):
            rows.option("overwriteSchema", "true").insertInto("kept")
        assert spark.table("kept").collect() == [(5,)]
        with pytest.raises(InvalidRequest, match="overwriteSchema"):
            rows.option("overwriteSchema", "maybe").insertInto("kept")
    finally:
        spark.sql("DROP TABLE kept")
