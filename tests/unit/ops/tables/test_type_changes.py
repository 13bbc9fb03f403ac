"""Columns with widened types, without Spark: old and new files are read as one, skipped correctly, changed and rewritten."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, SchemaMismatch
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import ArrayType, DataType, DecimalType, PrimitiveType, StructField, StructType
from tests.type_pairs import PAIRS

P = PrimitiveType
WIDENS = {
    "delta.enableTypeWidening": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.feature.timestampNtz": "supported",  # which no table that is there gets by itself
}
each_pair = pytest.mark.parametrize(
    ("old", "new", "before", "after", "later"), PAIRS, ids=lambda one: str(one) if isinstance(one, DataType) else ""
)


def made(path, old: DataType, **more) -> Table:
    """A table with a column of the type at every place where one can be."""
    kind = to_arrow_type(old)
    schema = pa.schema(
        [("id", pa.int64()), ("c", kind), ("s", pa.struct([("x", kind)])), ("l", pa.list_(kind)), ("m", pa.map_(kind, kind))]
    )
    return Table.create(path, schema, properties={**WIDENS, **more})


def rows(ids: range, value: object, kind: DataType) -> pa.Table:
    """Rows with the value at each of these places."""
    arrow, count = to_arrow_type(kind), len(ids)
    return pa.table(
        {
            "id": list(ids),
            "c": pa.array([value] * count, arrow),
            "s": pa.array([{"x": value}] * count, pa.struct([("x", arrow)])),
            "l": pa.array([[value, None]] * count, pa.list_(arrow)),
            "m": pa.array([[(value, value)]] * count, pa.map_(arrow, arrow)),
        }
    )


PLACES = ("c", "s.x", "l.element", "m.key", "m.value")


def widen(table: Table, new: DataType) -> None:
    for place in PLACES:
        table.change_column(place, data_type=new)


def shown(table: Table) -> list[tuple]:
    actual = table.to_arrow().sort_by("id").to_pylist()
    return [(row["id"], row["c"], row["s"]["x"], row["l"], row["m"]) for row in actual]


def literal(value: object, kind: DataType) -> str:
    sql = {"long": "bigint", "short": "smallint"}.get(str(kind), str(kind))
    return f"'{value}'" if isinstance(value, datetime) else f"CAST('{value}' AS {sql})"


@each_pair
def test_rows_of_old_and_new_files_are_one_table(tmp_path, old, new, before, after, later):
    table = made(tmp_path / "t", old)
    table.append(rows(range(2), before, old))
    widen(table, new)
    widest = table.version()
    table.append(rows(range(2, 4), later, new))
    assert table.schema().field("c").data_type == new
    expected = [(i, v, v, [v, None], [(v, v)]) for i, v in enumerate([after, after, later, later])]
    assert shown(table) == expected
    for value, ids in ((after, {0, 1}), (later, {2, 3})):
        for place in ("c", "s.x"):
            for op, sure in (("=", ids), ("<=>", ids), (">=", ids), ("<=", ids)):
                met = set(table.to_arrow(filter=f"{place} {op} {literal(value, new)}").column("id").to_pylist())
                assert sure <= met, (place, op, value)
                if op in ("=", "<=>"):
                    assert met == ids
    assert table.to_arrow(version=1).column("c").to_pylist()[0] == pa.array([before], to_arrow_type(old))[0].as_py()
    assert sorted((row["id"], row["c"], row["_commit_version"]) for row in table.changes(1).to_pylist()) == sorted(
        [(0, after, 1), (1, after, 1), (2, later, widest + 1), (3, later, widest + 1)]
    )
    table.delete(f"c = {literal(after, new)} and id = 0")
    table.update({"id": "id + 10"}, "id = 1")
    table.optimize()
    assert [row[:2] for row in shown(table)] == [(2, later), (3, later), (11, after)]
    assert not table.check(deep=True)


@each_pair
def test_partition_values_and_bounds_of_a_checkpoint_count_as_the_new_type(tmp_path, old, new, before, after, later):
    kind = to_arrow_type(old)
    properties = {
        **WIDENS,
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "true",
        "delta.checkpointInterval": "2",
    }
    table = Table.create(tmp_path / "t", pa.schema([("p", kind), ("c", kind)]), partition_by=["p"], properties=properties)
    table.append(pa.table({"p": pa.array([before, None], kind), "c": pa.array([before, None], kind)}))
    table.append(pa.table({"p": pa.array([before, before], kind), "c": pa.array([before, before], kind)}))
    table.delete("c IS NULL AND p IS NULL")
    table.change_column("p", data_type=new)
    table.change_column("c", data_type=new)
    wide = to_arrow_type(new)
    table.append(pa.table({"p": pa.array([later], wide), "c": pa.array([later], wide)}))
    fresh = Table(tmp_path / "t")
    # The log keeps a partition value as text, which says 0.1 where a file's float says 0.10000000149011612.
    partition = pa.scalar(str(before), pa.string()).cast(pa.float64()).as_py() if str(old) == "float" else after
    assert sorted(fresh.to_arrow().to_pylist(), key=lambda row: row["c"] == later) == [
        *[{"p": partition, "c": after}] * 3,
        {"p": later, "c": later},
    ]
    assert fresh.to_arrow(filter=f"c = {literal(after, new)}").num_rows == 3
    assert fresh.to_arrow(filter=f"p = {literal(partition, new)} and c is not null").num_rows == (3 if partition != later else 4)
    # The log does not say which type a file has, so the greatest value of a column that is a double now may leave out NaN.
    may_have_nan = str(new) == "double"
    assert len(fresh.files(filter=f"c > {literal(max(after, later), new)}")) == 0 or str(old) in ("float", "date") or may_have_nan
    fresh.overwrite(pa.table({"p": pa.array([partition], wide), "c": pa.array([later], wide)}), dynamic_partitions=True)
    assert {row["c"] for row in fresh.to_arrow().to_pylist()} == {later}
    assert not fresh.check(deep=True)


def test_appending_wider_values_widens_the_table_where_schemas_are_merged(tmp_path):
    table = made(tmp_path / "t", P("integer"))
    table.append(rows(range(1), 1, P("integer")))
    with pytest.raises(SchemaMismatch, match="2147483648"):
        table.append(rows(range(1), 2**31, P("long")))
    table.append(rows(range(1, 2), 2**31, P("long")), merge_schema=True)
    assert [row[1] for row in shown(table)] == [1, 2**31]
    column = table.schema().field("m")
    assert column.metadata["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "long", "fieldPath": "key"},
        {"fromType": "integer", "toType": "long", "fieldPath": "value"},
    ]
    table.append(rows(range(2, 3), 5, P("short")), merge_schema=True)
    assert table.schema().field("c").data_type == P("long")
    table.append(rows(range(3, 4), Decimal("1.50"), DecimalType(25, 2)), merge_schema=True)
    assert [str(change["toType"]) for change in table.schema().field("c").metadata["delta.typeChanges"]] == [
        "long",
        "decimal(25,2)",
    ]
    assert [row[1] for row in shown(table)] == [Decimal("1.00"), Decimal(2**31), Decimal("5.00"), Decimal("1.50")]
    assert not table.check(deep=True)


def test_a_table_that_is_overwritten_with_another_schema_records_no_types_of_files_that_are_gone(tmp_path):
    table = made(tmp_path / "t", P("integer"))
    table.append(rows(range(1), 1, P("integer")))
    table.change_column("c", data_type=P("long"))
    table.overwrite(pa.table({"c": pa.array([Decimal("1.5")], pa.decimal128(22, 1))}), overwrite_schema=True)
    assert table.schema().field("c").metadata == {}
    assert table.to_arrow().to_pylist() == [{"c": Decimal("1.5")}]


def test_a_merge_with_schema_evolution_widens_assigned_columns(tmp_path):
    schema = pa.schema(
        [("k", pa.int32()), ("a", pa.int16()), ("b", pa.int16()), ("s", pa.struct([("x", pa.float32()), ("y", pa.int8())]))]
    )
    table = Table.create(tmp_path / "t", schema, properties=WIDENS)
    table.append(pa.table({"k": [1, 2], "a": [1, 2], "b": [1, 2], "s": [{"x": 0.5, "y": 1}] * 2}, schema=schema))
    wide = pa.schema(
        [("k", pa.int64()), ("a", pa.int64()), ("b", pa.int64()), ("s", pa.struct([("x", pa.float64()), ("y", pa.int64())]))]
    )
    source = pa.table({"k": [2, 2**33], "a": [2**40, 3], "b": [2, 3], "s": [{"x": 0.1, "y": 9}] * 2}, schema=wide)
    merge = table.merge(source, "source.k = target.k").with_schema_evolution()
    merge.when_matched_update({"a": "source.a", "s.x": "source.s.x"}).execute()
    assert [str(column.data_type) for column in table.schema()] == ["integer", "long", "short", "struct<x:double,y:byte>"]
    assert table.to_arrow().sort_by("k").to_pylist()[1] == {"k": 2, "a": 2**40, "b": 2, "s": {"x": 0.1, "y": 1}}
    table.merge(source, "source.k = target.k").with_schema_evolution().when_not_matched_insert_all().execute()
    assert [str(column.data_type) for column in table.schema()] == ["long", "long", "long", "struct<x:double,y:long>"]
    assert table.to_arrow().column("k").to_pylist().count(2**33) == 1
    assert not table.check(deep=True)


def refused(call, *arguments, **named) -> str:
    with pytest.raises(InvalidRequest) as error:
        call(*arguments, **named)
    return f"{error.value.code}: {error.value.message}"


def test_only_wider_types_are_given_and_only_where_the_table_widens(tmp_path):
    table = made(tmp_path / "t", P("integer"))
    code = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    for place in PLACES:
        assert refused(table.change_column, place, data_type=P("short")).startswith("NOT_SUPPORTED_CHANGE_COLUMN")
        assert refused(table.change_column, place, data_type=P("string")).startswith(code)
    assert refused(table.change_column, "s", data_type=P("long")).startswith("NOT_SUPPORTED_CHANGE_COLUMN")
    assert refused(table.change_column, "l", data_type=ArrayType(P("long"))).startswith("CANNOT_UPDATE_FIELD.ARRAY_TYPE")
    table.add_constraint("small", "c < 5")
    assert refused(table.change_column, "c", data_type=P("long")).startswith("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE")
    table.set_properties({"delta.enableTypeWidening": "false"})
    assert "'delta.enableTypeWidening' = 'true'" in refused(table.change_column, "s.x", data_type=P("long"))
    assert refused(table.replace_columns, pa.schema([("id", pa.int64()), ("c", pa.int64())])).startswith("DELTA_UNSUPPORTED")


def test_a_generated_column_keeps_the_type_of_its_expression(tmp_path):
    twice = StructField("twice", P("integer"), True, {"delta.generationExpression": "id * 2"})
    table = Table.create(tmp_path, StructType((StructField("id", P("integer")), twice)), properties=WIDENS)
    assert refused(table.change_column, "twice", data_type=P("long")).startswith("DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH")


def test_columns_that_are_replaced_may_be_wider(tmp_path):
    table = Table.create(tmp_path / "t", pa.schema([("a", pa.int8()), ("l", pa.list_(pa.int32()))]), properties=WIDENS)
    table.append(pa.table({"a": pa.array([1], pa.int8()), "l": pa.array([[7]], pa.list_(pa.int32()))}))
    table.replace_columns(pa.schema([("l", pa.list_(pa.int64())), ("a", pa.float64())]))
    assert table.to_arrow().to_pylist() == [{"l": [7], "a": 1.0}]
    assert table.schema().field("l").metadata["delta.typeChanges"][0]["fieldPath"] == "element"


ICEBERG = {
    "delta.enableIcebergCompatV2": "true",
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.columnMapping.mode": "name",
}


def test_iceberg_s_tables_are_widened_as_far_as_iceberg_follows(tmp_path):
    table = made(tmp_path / "t", P("integer"), **ICEBERG)
    table.append(rows(range(1), 1, P("integer")))
    message = refused(table.change_column, "l.element", data_type=P("double"))
    assert message.startswith("DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_TYPE_WIDENING")
    assert "'l.element', widened from integer to double" in message
    table.append(rows(range(1, 2), 2.0, P("double")), merge_schema=True)
    assert table.schema().field("c").data_type == P("integer"), "what Iceberg cannot follow is cast, not widened"
    widen(table, P("long"))
    table.append(rows(range(2, 3), 2**40, P("long")))
    assert [row[1] for row in shown(table)] == [1, 2, 2**40]
