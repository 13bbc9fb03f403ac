"""Variants without Spark: their two parts are read and written unchanged, and shredded ones are reassembled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tahoe
from tahoe.base.exceptions import CorruptTable, InvalidRequest, SchemaMismatch
from tahoe.schema.arrow import VARIANT
from tests.variant_values import apart, decoded

FIELDS = [
    {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    {"name": "v", "type": "variant", "nullable": True, "metadata": {}},
    {"name": "s", "type": {"type": "struct", "fields": [{"name": "v", "type": "variant", "nullable": True}]}, "nullable": True},
    {"name": "l", "type": {"type": "array", "elementType": "variant", "containsNull": True}, "nullable": True},
]


@pytest.fixture(params=["variantType", "variantType-preview", "variantShredding-preview"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> tahoe.Table:
    features = sorted({request.param, "variantType"})
    variant = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}] * 3)
    rows = pa.table(
        {"id": [1, 2, 3], "v": variant, "s": pa.array([{"v": {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}}] * 3)}
    )
    pq.write_table(rows, tmp_path / "a.parquet")
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}},
        {
            "metaData": {
                "id": "i",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": FIELDS}),
                "partitionColumns": [],
                "configuration": {},
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": (tmp_path / "a.parquet").stat().st_size,
                "modificationTime": 1,
                "dataChange": True,
            }
        },
    ]
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return tahoe.Table(tmp_path)


ONE, TWO = ({"value": bytes([12, number]), "metadata": b"\x01\x00\x00"} for number in (1, 2))
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("v", VARIANT),
        ("s", pa.struct([("w", VARIANT)])),
        ("l", pa.list_(VARIANT)),
        ("m", pa.map_(pa.string(), VARIANT)),
    ]
)


def test_variants_are_read_as_their_two_parts(table: tahoe.Table) -> None:
    rows = table.to_arrow()
    assert rows.schema.field("v").type == VARIANT
    assert rows.to_pylist()[0] == {"id": 1, "v": ONE, "s": {"v": ONE}, "l": None}
    assert table.to_arrow(columns=["id"], filter="v is not null and id > 1")["id"].to_pylist() == [2, 3]
    assert str(table.schema()) == "struct<id:long,v:variant,s:struct<v:variant>,l:array<variant>>"


def made(path: Path, **properties: str) -> tahoe.Table:
    actual = tahoe.Table.create(path, SCHEMA, properties={"delta.enableChangeDataFeed": "true", **properties})
    rows = [
        {"id": 1, "v": ONE, "s": {"w": TWO}, "l": [ONE, None], "m": [("k", TWO)]},
        {"id": 2, "v": None, "s": None, "l": None, "m": None},
        {"id": 3, "v": TWO, "s": {"w": None}, "l": [], "m": [("k", None)]},
    ]
    actual.append(pa.Table.from_pylist(rows, SCHEMA))
    return actual


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "id"}, {"delta.enableDeletionVectors": "true"}], ids=str)
def test_they_are_written_changed_and_laid_out_again(tmp_path: Path, properties: dict[str, str]) -> None:
    table = made(tmp_path / "t", **properties)
    assert {"variantType"} <= table.snapshot().config.protocol.reader_features
    table.append(pa.table({"id": [4]}))
    assert table.to_arrow(filter="v is null").sort_by("id")["id"].to_pylist() == [2, 4]
    assert table.to_arrow(filter="s.w is not null").sort_by("id")["id"].to_pylist() == [1]
    # `nullCount` is all that the specification knows of a variant's statistics.
    assert len(table.files(filter="v is not null")) == 1
    table.update({"id": "id * 10"}, "id = 1")
    table.delete("v is null and id = 2")
    source = table.to_arrow(filter="id = 10").set_column(0, "id", pa.array([5]))
    table.merge(source, "source.id = target.id").when_not_matched_insert_all().execute()
    table.optimize()
    shown = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
    assert shown == {3: TWO, 4: None, 10: ONE, 5: ONE}
    assert table.to_arrow(filter="id = 5")["l"].to_pylist() == [[ONE, None]]
    assert table.changes(1).filter(pc.field("_change_type") == "delete")["v"].to_pylist() == [None]
    assert not table.check(deep=True)


def test_a_variant_neither_partitions_nor_orders_rows(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as error:
        tahoe.Table.create(tmp_path / "p", SCHEMA, partition_by=["v"])
    assert error.value.code == "DELTA_INVALID_PARTITION_COLUMN_TYPE"
    table = made(tmp_path / "t")
    for call in (lambda: table.cluster_by(["v"]), lambda: table.optimize(zorder_by=["v"]), lambda: table.delete("v = 1")):
        with pytest.raises(InvalidRequest, match="variant"):
            call()


def test_values_that_are_no_variants_are_not_written_as_such(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for values in (pa.array([7]), pa.array([{"value": b"x"}]), pa.array([{"value": b"x", "metadata": None}]), pa.array(["{}"])):
        with pytest.raises(SchemaMismatch):
            table.append(pa.table({"id": [9], "v": values}))
    assert table.version() == 1


def test_iceberg_s_side_refuses_them_by_name(tmp_path: Path) -> None:
    properties = {"delta.enableIcebergCompatV3": "true", "delta.universalFormat.enabledFormats": "iceberg"}
    with pytest.raises(InvalidRequest, match="'v' of type variant, which the Iceberg side cannot show"):
        made(tmp_path / "t", **properties)


NAMES = ("a", "b", "c")
SHAPE = ("object", {"a": "int32", "b": ("array", "string")})
TREES = [
    ("object", {"a": ("int32", 7), "c": ("boolean", True)}),
    None,
    ("object", {"a": ("null",), "b": ("array", [("string", "x"), ("double", 0.5)])}),
]


def taken_apart(path: Path, array: pa.Array, **properties: str) -> tahoe.Table:
    """A table whose one file has this array as its column `v`."""
    made(path, **{"delta.enableVariantShredding": "true", **properties})
    file = next(path.rglob("*.parquet"))
    rows = pq.read_table(file)
    column = rows.schema.field(1).with_type(array.type)
    pq.write_table(rows.set_column(1, column, array), file)
    log = path / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["size"] = file.stat().st_size
            stats = json.loads(action["add"]["stats"])
            # As the reference writes bounds of paths: a variant in Z85, which nobody without Spark needs.
            bounds = "0S&u700000001O#Q}R8lbO2bB6fI02j6c$$bvt"
            stats["minValues"][column.name] = stats["maxValues"][column.name] = bounds
            action["add"]["stats"] = json.dumps(stats)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions if "commitInfo" not in action))
    for crc in log.parent.glob("*.crc"):
        crc.unlink()
    return tahoe.Table(path)


def reported(table: tahoe.Table) -> dict[int, Any]:
    rows = table.to_arrow().to_pylist()
    return {row["id"]: None if row["v"] is None else decoded(row["v"]["metadata"], row["v"]["value"]) for row in rows}


@pytest.mark.damages_tables
@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "id"}, {"delta.enableDeletionVectors": "true"}], ids=str)
def test_shredded_variants_are_read_changed_and_rewritten(tmp_path: Path, properties: dict[str, str]) -> None:
    table = taken_apart(tmp_path / "t", apart(TREES, SHAPE, NAMES), **properties)
    assert reported(table) == {1: TREES[0], 2: None, 3: TREES[2]}
    assert table.to_arrow(columns=["id"], filter="v is null")["id"].to_pylist() == [2]
    table.checkpoint()
    table = tahoe.Table(tmp_path / "t")
    assert len(table.files(filter="v is not null")) == 1
    table.update({"id": "id * 10"}, "id = 1")
    table.delete("id = 2")
    source = table.to_arrow(filter="id = 10").set_column(0, "id", pa.array([5]))
    table.merge(source, "source.id = target.id").when_not_matched_insert_all().execute()
    table.optimize()
    assert len(table.files()) == 1
    assert reported(table) == {3: TREES[2], 5: TREES[0], 10: TREES[0]}
    assert pq.read_schema(tmp_path / "t" / table.files()["path"][0].as_py()).field(1).type.num_fields == 2
    assert [row["id"] for row in table.changes(2).to_pylist() if row["_change_type"] == "delete"] == [2]
    assert not table.check(deep=True)


@pytest.mark.damages_tables
def test_invalid_shredding_is_reported_with_file_and_column(tmp_path: Path) -> None:
    both = pa.array([{"metadata": ONE["metadata"], "value": ONE["value"], "typed_value": 1}, None, None])
    table = taken_apart(tmp_path / "t", both)
    assert table.to_arrow(columns=["id", "s"]).num_rows == 3
    with pytest.raises(CorruptTable, match=r"'v' of data file .* has both a value and a typed_value") as error:
        table.to_arrow()
    assert error.value.code == "TAHOE_DATA_FILE_TYPE_MISMATCH"
    assert "both a value and a typed_value" in str(table.check(deep=True))


@pytest.mark.parametrize(
    "condition",
    [
        *(
            "v = v",
            "v <=> v",
            "v IN (v)",
            "v < v",
            "v BETWEEN v AND v",
            "s = s",
            "l = l",
            "array_contains(l, v)",
            "greatest(v, v) IS NULL",
        ),
        *("v = NULL", "nullif(v, v) IS NULL", "CAST(v AS STRING) = '1'", "concat(v, 'x') = '1'", "v LIKE '1'", "upper(v) = '1'"),
        *("CAST(v AS INT) = 1", "CAST(s AS STRING) = '1'", "variant_get(v, '$.a', 'int') = 1", "v:a = 1"),
    ],
)
def test_a_variant_is_neither_compared_nor_a_text(tmp_path: Path, condition: str) -> None:
    # One value has bytes of more than one kind, so that equal bytes would say nothing of equal values.
    table = made(tmp_path / "t")
    with pytest.raises(InvalidRequest) as error:
        table.to_arrow(filter=condition)
    assert error.value.code in ("DATATYPE_MISMATCH", "TAHOE_EXPRESSION_NOT_ALLOWED", "PARSE_SYNTAX_ERROR")
    with pytest.raises(InvalidRequest):
        table.delete(condition)
    assert table.version() == 1


def test_a_variant_is_assigned_to_variants_alone(tmp_path: Path) -> None:
    table = with_text(tmp_path)
    for column, value in (("t", "v"), ("v", "t"), ("v", "'x'"), ("v", "1")):
        with pytest.raises(InvalidRequest, match="variant"):
            table.update({column: value})
    source = table.to_arrow()
    with pytest.raises(InvalidRequest, match="variants and geometries cannot be compared"):
        table.merge(source, "source.v = target.v").when_matched_delete().execute()
    table.update({"v": "if(id = 1, NULL, v)"})
    assert {row["id"]: row["v"] for row in table.to_arrow().to_pylist()} == {1: None, 2: TWO}


def with_text(path: Path) -> tahoe.Table:
    table = tahoe.Table.create(path / "t", pa.schema([("id", pa.int64()), ("v", VARIANT), ("t", pa.string())]))
    table.append(pa.table({"id": [1, 2], "v": pa.array([ONE, TWO], VARIANT), "t": ["a", "b"]}))
    return table
