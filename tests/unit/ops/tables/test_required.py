"""SET NOT NULL: rows are validated first, at every depth where a writer validates rows to come."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import DeltaConcurrentModificationException, InvalidRequest, InvariantViolation
from tahoe.ops.tables.alter_columns import ColumnChange, stage_change_columns

INNER = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("Odd name", pa.int64()),
        ("s", INNER),
        ("l", pa.list_(pa.struct([("x", pa.int64())]))),
        ("m", pa.map_(pa.string(), pa.struct([("y", pa.int64())]))),
    ]
)
FULL = {"id": 1, "p": "x", "Odd name": 3, "s": {"a": 1, "b": {"c": "t"}}, "l": [{"x": 1}], "m": [("k", {"y": 1})]}
PROPERTIES = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}


def table_of(path, *rows, properties=None, partition_by=()) -> Table:
    table = Table.create(path, SCHEMA, properties={**PROPERTIES, **(properties or {})}, partition_by=partition_by)
    for row in rows:
        table.append(pa.Table.from_pylist([row], schema=SCHEMA))
    return table


@pytest.mark.parametrize(
    ("column", "row"),
    [
        ("id", {**FULL, "id": None}),
        ("p", {**FULL, "p": None}),
        ("`Odd name`", {**FULL, "Odd name": None}),
        ("s", {**FULL, "s": None}),
        ("s.a", {**FULL, "s": {"a": None, "b": {"c": "t"}}}),
        ("s.a", {**FULL, "s": None}),
        ("S.B", {**FULL, "s": {"a": 1, "b": None}}),
        ("s.b.c", {**FULL, "s": {"a": 1, "b": {"c": None}}}),
        ("l", {**FULL, "l": None}),
        ("m", {**FULL, "m": None}),
    ],
)
def test_not_null_is_set_only_if_no_row_has_null(tmp_path, column, row):
    table = table_of(tmp_path / "t", FULL, row, partition_by=["p"])
    version = table.version()
    with pytest.raises(InvariantViolation, match="1 row has NULL in it; nothing was changed") as error:
        table.change_column(column, nullable=False)
    assert error.value.code == "DELTA_NEW_NOT_NULL_VIOLATION" and table.version() == version
    table.delete(f"{column} IS NULL")
    assert table.change_column(column, nullable=False) == version + 2
    assert table.history(1)[0]["operation"] == "CHANGE COLUMN"
    with pytest.raises(InvariantViolation):
        table.append(pa.Table.from_pylist([row], schema=SCHEMA))
    table.append(pa.Table.from_pylist([FULL], schema=SCHEMA))
    table.change_column(column, nullable=True)
    table.append(pa.Table.from_pylist([row], schema=SCHEMA))
    assert table.check() == []


def test_an_empty_table_and_a_column_that_has_it_already_need_no_rows(tmp_path):
    table = table_of(tmp_path / "t", properties={"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"})
    table.change_column("id", nullable=False)
    table.change_column("id", nullable=False, comment="key")
    assert not table.schema().field("id").nullable and "invariants" in table.snapshot().config.features


@pytest.mark.parametrize("column", ["l.element.x", "m.value.y", "l.element", "m.value"])
def test_elements_of_arrays_and_maps_are_never_required(tmp_path, column):
    table = table_of(tmp_path / "t", FULL)
    with pytest.raises(InvalidRequest) as error:
        table.change_column(column, nullable=False)
    codes = {"DELTA_NESTED_NOT_NULL_CONSTRAINT", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"}
    assert error.value.code in codes and table.version() == 1


def test_a_row_that_comes_meanwhile_is_validated_too(tmp_path):
    table = table_of(tmp_path / "t", FULL)
    transaction = table.begin()
    operation = stage_change_columns(transaction, transaction.existing(), [ColumnChange(("id",), nullable=False)])
    table.append(pa.Table.from_pylist([{**FULL, "id": None}], schema=SCHEMA))
    with pytest.raises(DeltaConcurrentModificationException):
        table.commit(transaction, operation)
    assert table.schema().field("id").nullable


def test_a_new_table_has_no_not_null_inside_arrays_and_maps(tmp_path):
    required = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    for number, kind in enumerate((pa.list_(required), pa.map_(pa.string(), required), pa.list_(pa.list_(required)))):
        for data_type in (kind, pa.struct([("f", kind)])):
            with pytest.raises(InvalidRequest) as error:
                Table.create(tmp_path / str(number), pa.schema([("a", data_type)]))
            assert error.value.code == "DELTA_NESTED_NOT_NULL_CONSTRAINT" and not (tmp_path / str(number)).exists()
    assert Table.create(tmp_path / "fine", pa.schema([("s", required)])).version() == 0
