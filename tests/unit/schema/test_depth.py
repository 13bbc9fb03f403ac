"""Columns that are nested deeper than Arrow reads Parquet are refused before anything is written."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import Unsupported
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.depth import check_depth


def nested(kind: str, depth: int) -> tuple[pa.DataType, Any]:
    """A type of so many structs, arrays or maps around a number, and a value of it."""
    data_type, value = pa.int64(), 1
    for _ in range(depth):
        if kind == "struct":
            data_type, value = pa.struct([pa.field("a", data_type)]), {"a": value}
        elif kind == "array":
            data_type, value = pa.list_(pa.field("element", data_type)), [value]
        else:
            data_type, value = pa.map_(pa.string(), data_type), [("k", value)]
    return data_type, value


@pytest.mark.parametrize(("kind", "deepest"), [("struct", 95), ("array", 49), ("map", 49)])
def test_the_deepest_column_is_read_again_and_has_checkpoints(kind: str, deepest: int) -> None:
    data_type, value = nested(kind, deepest)
    table = Table.create(
        f"memory://{uuid.uuid4()}/t", pa.schema({"x": data_type}), properties={"delta.checkpoint.writeStatsAsStruct": "true"}
    )
    table.append(pa.table({"x": pa.array([value], data_type)}))
    table.checkpoint()
    assert Table(table.url).to_arrow()["x"].to_pylist() == [value] and table.check(deep=True) == []


@pytest.mark.parametrize(
    ("kind", "depth"), [("struct", 96), ("struct", 99), ("struct", 400), ("array", 50), ("map", 50), ("map", 400)]
)
def test_a_deeper_one_is_refused_when_the_table_gets_it(kind: str, depth: int) -> None:
    url, schema = f"memory://{uuid.uuid4()}/t", pa.schema({"x": nested(kind, depth)[0]})
    with pytest.raises(Unsupported, match="Column 'x' is nested too deep") as error:
        Table.create(url, schema)
    assert error.value.code == "TAHOE_NESTED_TOO_DEEP" and not Table(url).exists()
    table = Table.create(url, pa.schema({"id": pa.int64()}))
    with pytest.raises(Unsupported, match="nested too deep"):
        table.add_columns(schema)
    with pytest.raises(Unsupported, match="nested too deep"):
        table.append(pa.table({"id": [1], "x": pa.nulls(1, schema.field("x").type)}), merge_schema=True)
    assert table.version() == 0


def test_a_schema_is_checked_whatever_it_came_from() -> None:
    check_depth(from_arrow_schema(pa.schema({"x": nested("struct", 95)[0]})))
    with pytest.raises(Unsupported):
        check_depth(from_arrow_schema(pa.schema({"x": nested("struct", 97)[0]})))
