"""Files that join a table as they are, and each reason for which the rows of a file are written again."""

from __future__ import annotations

import io
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.schema.mapping import ID_KEY, NESTED_IDS_KEY, PHYSICAL_NAME_KEY
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType
from tahoe.uniform.commits.registration import why_rewritten

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")


def column(name: str, number: int, kind: DataType = LONG, *, nullable: bool = True, **metadata: Any) -> StructField:
    return StructField(name, kind, nullable, {ID_KEY: number, PHYSICAL_NAME_KEY: name, **metadata})


def config(*columns: StructField, partition_by: tuple[str, ...] = (), **configuration: str) -> TableConfig:
    schema = StructType(columns).to_json()
    mapped = {"delta.columnMapping.mode": "name", **configuration}
    return TableConfig(Protocol(3, 7), Metadata("id", schema, partition_by, mapped), "memory://t")


def field(name: str, number: int, kind: pa.DataType | None = None) -> pa.Field:
    return pa.field(name, kind or pa.int64(), metadata={"PARQUET:field_id": str(number)})


def footer(*columns: tuple[pa.Field, list[Any]], **options: Any) -> Any:
    target = io.BytesIO()
    table = pa.table([pa.array(values, item.type) for item, values in columns], schema=pa.schema([item for item, _ in columns]))
    pq.write_table(table, target, **options)
    return pq.read_metadata(target)


def reason(table: TableConfig, file: Any, partition: dict[str, Any] | None = None) -> str | None:
    return why_rewritten(table, file, partition or {})


ID = (field("id", 1), [1, 2])


def test_a_file_with_the_table_s_names_ids_and_types_is_registered() -> None:
    nested = column(
        "n",
        2,
        StructType((column("items", 3, ArrayType(TEXT, True), **{NESTED_IDS_KEY: {"items.element": 4}}),)),
    )
    stored = field("n", 2, pa.struct([field("items", 3, pa.list_(field("element", 4, pa.string())))]))
    assert reason(config(column("id", 1), nested), footer(ID, (stored, [{"items": ["a"]}, None]))) is None


def test_columns_may_be_missing_or_in_another_order() -> None:
    table = config(column("later", 9), column("b", 2), column("id", 1))
    assert reason(table, footer(ID, (field("b", 2), [3, 4]))) is None


@pytest.mark.parametrize(
    ("table", "file", "expected"),
    [
        pytest.param(
            config(column("new", 1, **{PHYSICAL_NAME_KEY: "col-5"})),
            footer((field("new", 1), [1])),
            "named 'new' in the file",
            id="renamed",
        ),
        pytest.param(config(column("id", 1)), footer((pa.field("id", pa.int64()), [1])), "no field id", id="no id"),
        pytest.param(config(column("id", 1)), footer(ID, (field("x", 1), [1, 2])), "no field id of its own", id="one id twice"),
        pytest.param(config(column("id", 1)), footer((field("id", 7), [1])), "is not in the table", id="id of no column"),
        pytest.param(
            config(column("id", 1)), footer((field("id", 1, pa.int32()), [1])), "of type int32 in the file", id="narrower type"
        ),
        pytest.param(
            config(column("at", 1, PrimitiveType("timestamp"))),
            footer((field("at", 1, pa.timestamp("ns", "UTC")), [1]), use_deprecated_int96_timestamps=True),
            "of type timestamp[ns]",
            id="INT96",
        ),
        pytest.param(
            config(column("m", 1, MapType(TEXT, LONG, True), **{NESTED_IDS_KEY: {"m.key": 2, "m.value": 3}})),
            footer(
                (field("m", 1, pa.map_(pa.field("key", pa.string(), False, {"PARQUET:field_id": "2"}), field("value", 9))), [[]])
            ),
            "m.value has another field id",
            id="id of a map's values",
        ),
        pytest.param(config(column("id", 1, nullable=False)), footer((field("id", 1), [None])), "has no NULL", id="NULL"),
        pytest.param(config(column("a", 5, nullable=False)), footer(ID), "required column a is missing", id="required"),
        pytest.param(
            config(column("id", 1), **{"delta.constraints.positive": "id > 0"}),
            footer(ID),
            "checks rows: checkConstraints",
            id="CHECK",
        ),
    ],
)
def test_a_file_that_some_reader_would_misread_is_written_again(table: TableConfig, file: Any, expected: str) -> None:
    assert expected in str(reason(table, file))


def test_partition_values_are_proved_by_the_footer() -> None:
    table = config(column("id", 1), column("day", 2, PrimitiveType("date")), partition_by=("day",))
    day = field("day", 2, pa.date32())
    first = date(2026, 1, 1)
    assert reason(table, footer(ID, (day, [first, first])), {"day": first}) is None
    assert reason(table, footer(ID, (day, [None, None])), {"day": None}) is None
    for values, stated in (
        ([first, None], first),
        ([first, date(2026, 1, 2)], first),
        ([first, first], date(2026, 1, 2)),
        ([first, first], None),
    ):
        assert "does not prove the partition value of column day" in str(
            reason(table, footer(ID, (day, values)), {"day": stated})
        )
    without = footer(ID, (day, [first, first]), write_statistics=False)
    assert "does not prove the partition value" in str(reason(table, without, {"day": first}))
    assert "does not prove the partition value" in str(reason(table, footer(ID), {"day": first}))
