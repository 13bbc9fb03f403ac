"""`Table.column_statistics`: from the log alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tahoe.api.table import Table


def test_bounds_nulls_and_partitions(tmp_path: Path) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("day", pa.string()), ("s", pa.struct([("a", pa.int32())])), ("l", pa.list_(pa.int64()))]
    )
    table = Table.create(tmp_path / "t", schema, partition_by=["day"])
    table.append(pa.table([[1, None, 3], ["a", "a", "b"], [{"a": 1}, None, {"a": 5}], [[1], None, [2]]], schema))
    statistics = table.column_statistics()
    assert (statistics.rows, statistics.files, statistics.files_without) == (3, 2, 0)
    columns = {column.column: (column.nulls, column.least, column.greatest) for column in statistics.columns}
    assert columns == {"id": (1, 1, 3), "day": (None, "a", "b"), "s.a": (1, 1, 5), "l": (None, None, None)} or columns["l"][
        1:
    ] == (None, None)


def test_a_bound_that_one_file_lacks_is_unknown(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", {"x": "double"})
    table.append(pa.table({"x": [1.0, 2.0]}))
    table.append(pa.table({"x": [float("nan"), 0.5]}))
    table.append(pa.table({"x": pa.array([None], pa.float64())}))
    (column,) = table.column_statistics().columns
    assert (column.least, column.greatest, column.nulls) == (0.5, None, 1)


def test_deleted_rows_do_not_count(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", {"x": "long"}, properties={"delta.enableDeletionVectors": "true"})
    table.append(pa.table({"x": [1, 2, 3]}))
    table.delete("x = 2")
    assert table.column_statistics().rows == 2
    assert table.column_statistics(1).rows == 3
    assert "2 rows in version 2" in table.column_statistics()._repr_html_()


def test_an_empty_table(tmp_path: Path) -> None:
    statistics = Table.create(tmp_path / "t", {"x": "long"}).column_statistics()
    assert (statistics.rows, statistics.files) == (0, 0)
