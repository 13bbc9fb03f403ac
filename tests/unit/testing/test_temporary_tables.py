"""The factory of tables for tests."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.testing.assertions import assert_history, assert_rows, assert_schema
from tahoe.testing.temporary_tables import TemporaryTables


def test_rows_are_mappings_or_arrow_data(tmp_path: Path) -> None:
    make = TemporaryTables(tmp_path / "tables")
    first, two = make([{"id": 1}, {"id": 2}]), make(pa.table({"id": [1, 2]}))
    assert first.url != two.url
    assert_rows(first, two)
    assert_history(first, ["CREATE TABLE", "WRITE"])
    assert_schema(make([{"id": 1, "day": None}], schema={"id": "int", "day": "date"}), {"id": "int", "day": "date"})


def test_a_table_may_be_empty_partitioned_and_have_properties(tmp_path: Path) -> None:
    table = TemporaryTables(tmp_path)(
        schema={"id": "long", "p": "string"}, partition_by=["p"], properties={"delta.appendOnly": "true"}
    )
    assert table.version() == 0
    assert table.snapshot().partition_columns == ("p",)
    assert table.detail()["properties"]["delta.appendOnly"] == "true"
    with pytest.raises(ValueError, match="delta_table needs rows, as in"):
        TemporaryTables(tmp_path)()
