"""The types of columns that the native scan reads."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.actions import AddFile, Metadata, Protocol
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.types import DecimalType, PrimitiveType, StructField, StructType
from tests.spark.scanned_tables import add, load, write_log

LONG, STRING, INTEGER = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("integer")


class TestTypes:
    WIDER = (
        ("byte", pa.int8(), LONG, 5),
        ("short", pa.int16(), INTEGER, 5),
        ("integer", pa.int32(), LONG, 5),
        ("integer", pa.int32(), PrimitiveType("double"), 5.0),
        ("float", pa.float32(), PrimitiveType("double"), 0.5),
        ("date", pa.date32(), PrimitiveType("timestamp_ntz"), datetime(2026, 1, 2)),
        ("decimal(5,2)", pa.decimal128(5, 2), DecimalType(12, 4), Decimal("1.5000")),
        ("decimal(12,2)", pa.decimal128(12, 2), DecimalType(30, 5), Decimal("1.50000")),
        ("integer", pa.int32(), DecimalType(12, 2), Decimal("5.00")),
        ("long", pa.int64(), DecimalType(22, 2), Decimal("5.00")),
    )

    @pytest.mark.parametrize(("old", "arrow", "new", "value"), WIDER, ids=[f"{old}-{new}" for old, _, new, _ in WIDER])
    @pytest.mark.parametrize("nested", [False, True])
    def test_files_of_a_narrower_type_are_read_as_the_columns_type(self, spark, tmp_path, old, arrow, new, value, nested):
        changes = {"delta.typeChanges": [{"fromType": old, "toType": str(new), "tableVersion": 1}]}
        column = StructField("v", new, True, changes)
        stored = {"date": date(2026, 1, 2), "float": 0.5}.get(old, Decimal("1.5") if old.startswith("decimal") else 5)
        values = pa.array([stored, None], arrow)
        if nested:
            column = StructField("s", StructType((column,)))
            values = pa.StructArray.from_arrays([values], ["v"])
        features = frozenset(["typeWidening", "timestampNtz"])
        first = add(tmp_path, "a.parquet", pa.table({column.name: values}))
        write_log(tmp_path, Protocol(3, 7, features, features), Metadata("x", StructType((column,)).to_json()), first)
        actual = [row[0].v if nested else row[0] for row in load(spark, str(tmp_path)).collect()]
        assert actual == [value, None]

    def test_columns_that_old_files_lack_are_null(self, spark, tmp_path):
        schema = StructType(
            (StructField("a", LONG), StructField("b", StructType((StructField("c", LONG), StructField("d", STRING)))))
        )
        old = add(tmp_path, "old.parquet", pa.table({"a": [1]}))
        middle = add(tmp_path, "middle.parquet", pa.table({"a": [2], "b": [{"c": 3}]}))
        write_log(tmp_path, Protocol(1, 2), Metadata("x", schema.to_json()), old, middle)
        rows = [row.asDict(recursive=True) for row in load(spark, str(tmp_path)).orderBy("a").collect()]
        assert rows == [{"a": 1, "b": None}, {"a": 2, "b": {"c": 3, "d": None}}]

    def test_void_columns_are_there_and_null(self, spark, tmp_path):
        void = PrimitiveType("void")
        inner = StructType((StructField("a", LONG), StructField("nothing", void)))
        schema = StructType((StructField("void", void), StructField("id", LONG), StructField("s", inner)))
        first = add(tmp_path, "a.parquet", pa.table({"id": [1], "s": [{"a": 2}]}))
        write_log(tmp_path, Protocol(1, 2), Metadata("x", schema.to_json()), first)
        frame = load(spark, str(tmp_path))
        assert frame.schema.simpleString() == "struct<void:void,id:bigint,s:struct<a:bigint,nothing:void>>"
        assert frame.where("id = 1 and s.a = 2").first().asDict(recursive=True) == {
            "void": None,
            "id": 1,
            "s": {"a": 2, "nothing": None},
        }

    def test_timestamps_of_all_units_and_int96_are_the_same_instants(self, spark, tmp_path):
        schema = from_arrow_schema(pa.schema([("t", pa.timestamp("us", "UTC"))]))
        moment = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
        adds = []
        for name, options in (
            ("us", {}),
            ("ms", {"coerce_timestamps": "ms"}),
            ("int96", {"use_deprecated_int96_timestamps": True}),
        ):
            pq.write_table(
                pa.table({"t": pa.array([moment], pa.timestamp("us", "UTC"))}), tmp_path / f"{name}.parquet", **options
            )
            adds.append(AddFile(f"{name}.parquet", {}, os.path.getsize(tmp_path / f"{name}.parquet"), 1, True))
        write_log(tmp_path, Protocol(1, 2), Metadata("x", schema.to_json()), *adds)
        frame = load(spark, str(tmp_path)).select(sf.unix_micros("t"))
        assert {row[0] for row in frame.collect()} == {int(moment.timestamp() * 1_000_000)}

    def test_char_and_varchar_are_read_as_spark_reads_them(self, spark, tmp_path):
        columns = (("c", "char(4)"), ("v", "varchar(4)"))
        schema = StructType(tuple(StructField(n, STRING, True, {"__CHAR_VARCHAR_TYPE_STRING": kind}) for n, kind in columns))
        first = add(tmp_path, "a.parquet", pa.table({"c": ["ab", None], "v": ["ab", "x"]}))
        write_log(tmp_path, Protocol(1, 2), Metadata("x", schema.to_json()), first)
        frame = load(spark, str(tmp_path))
        assert [tuple(row) for row in frame.collect()] == [("ab  ", "ab"), (None, "x")]
        assert frame.where("c = 'ab'").count() == 1

    @pytest.mark.parametrize("is_mapped", [False, True])
    def test_collated_texts_are_compared_as_spark_compares_them(self, spark, tmp_path, is_mapped):
        def column(name, number):
            mapping = {"delta.columnMapping.physicalName": f"col-{name}", "delta.columnMapping.id": number} if is_mapped else {}
            return StructField(name, STRING, True, {"__COLLATIONS": {name: "spark.UTF8_LCASE"}, **mapping})

        s, p = column("s", 1), column("p", 2)
        files = [
            replace(
                add(tmp_path, f"{part}.parquet", pa.table({s.physical_name: [text]})),
                partition_values={p.physical_name: part},
                stats=json.dumps(
                    {
                        "numRecords": 1,
                        "minValues": {s.physical_name: text},
                        "maxValues": {s.physical_name: text},
                        "nullCount": {s.physical_name: 0},
                    }
                ),
            )
            for part, text in (("x", "a"), ("X", "A"))
        ]
        properties = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"} if is_mapped else {}
        metadata = Metadata("x", StructType((s, p)).to_json(), ("p",), properties)
        write_log(tmp_path, Protocol(2, 7, None, frozenset({"collations", "columnMapping"})), metadata, *files)
        frame = load(spark, str(tmp_path))
        for condition in ("s = 'a'", "p = 'X'", "p IN ('x')", "startswith(p, 'X')", "s <= 'A' AND p >= 'x'"):
            assert frame.where(condition).count() == 2, condition
        assert frame.where("s COLLATE UTF8_BINARY = 'a'").count() == 1
        assert frame.join(frame.select("p"), "p").count() == 4
        assert [row[1] for row in frame.groupBy("p").count().collect()] == [2]
        with pytest.raises(InvalidRequest, match="TAHOE_COLLATED_COLUMN"):
            Table(str(tmp_path)).to_arrow(filter="p = 'x'")
        assert Table(str(tmp_path)).schema().field("s").metadata["__COLLATIONS"] == {"s": "spark.UTF8_LCASE"}

    def test_a_default_value_of_a_column_is_not_read_into_old_files(self, spark, tmp_path):
        keys = {"CURRENT_DEFAULT": "7", "EXISTS_DEFAULT": "7", "comment": "seen"}
        schema = StructType((StructField("a", LONG), StructField("b", LONG, True, keys)))
        first = add(tmp_path, "a.parquet", pa.table({"a": [1]}))
        write_log(tmp_path, Protocol(1, 2), Metadata("x", schema.to_json()), first)
        frame = load(spark, str(tmp_path))
        assert frame.first().b is None
        assert frame.schema["b"].metadata == {"comment": "seen"}
