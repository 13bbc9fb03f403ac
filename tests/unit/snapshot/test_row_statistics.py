"""The log's statistics of rows equal those of the rows, or are absent."""

from __future__ import annotations

import uuid
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe import Table
from tahoe.snapshot.row_statistics import Bounds, RowStatistics

SCHEMA = pa.schema(
    [
        ("p", pa.string()),
        ("n", pa.int32()),
        ("d", pa.date32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
    ]
)


def place() -> str:
    return f"memory://{uuid.uuid4()}/table"


EXACT = ("n", "d")


def rows(values):
    return pa.table(
        {
            "p": [value["p"] for value in values],
            "n": [value["n"] for value in values],
            "d": [None if value["n"] is None else date.fromordinal(700_000 + value["n"] % 1000) for value in values],
            "f": [float(value["n"] or 0) for value in values],
            "s": ["long text " * 10] * len(values),
            "t": [datetime(2020, 1, 1)] * len(values),
        },
        SCHEMA,
    )


def known(table: Table) -> RowStatistics:
    snapshot = table.snapshot()
    return RowStatistics(snapshot.files(), snapshot.partition_columns)


VALUES = st.fixed_dictionaries(
    {"p": st.sampled_from(["a", "b", None]), "n": st.none() | st.integers(-5, 5) | st.sampled_from([-(2**31), 2**31 - 1])}
)


@given(st.lists(st.lists(VALUES, max_size=6), max_size=4), st.none() | st.integers(-5, 5))
def test_stated_statistics_are_true(parts, deleted):
    table = Table.create(place(), SCHEMA, partition_by=["p"], properties={"delta.enableDeletionVectors": "true"})
    for part in parts:
        table.append(rows(part))
    if deleted is not None:
        table.delete(f"n = {deleted}")
    actual, all_rows = known(table), table.to_arrow()
    has_vectors = bool(actual.files["deletionVector"].is_valid().to_pylist().count(True))
    assert actual.count() == all_rows.num_rows
    for name in SCHEMA.names:
        column = table.snapshot().schema.find(name)
        values = all_rows[name]
        reported = actual.count_of(column)
        assert reported == len(values) - values.null_count or (reported is None and has_vectors and name != "p")
        bounds = actual.bounds(column)
        if name not in EXACT or has_vectors:
            assert bounds is None
        else:
            assert bounds == Bounds(pc.min(values).as_py(), pc.max(values).as_py())
    partitions = actual.living_files()
    assert {dict(value)["p"] for value in partitions["partitionValues"].to_pylist()} == set(all_rows["p"].to_pylist())


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 30))
def test_a_limit_takes_the_files_that_are_enough(sizes, count):
    table = Table.create(place(), pa.schema([("id", pa.int64())]))
    for size in sizes:
        table.append(pa.table({"id": list(range(size))}))
    files = known(table).first(count)
    if count > sum(sizes):
        assert files is None
        return
    remaining = [
        len(table.snapshot().scan().read([add]))
        for add in table.snapshot().scan().add_files()
        if add.path in files["path"].to_pylist()
    ]
    assert sum(remaining) >= count > sum(remaining) - remaining[-1]


def test_nothing_is_said_where_one_file_leaves_it_open():
    table = Table.create(place(), pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    table.set_properties({"delta.dataSkippingNumIndexedCols": "0"})
    table.append(pa.table({"id": [3]}))
    column = table.snapshot().schema.find("id")
    assert known(table).count() == 3
    assert (known(table).count_of(column), known(table).bounds(column)) == (None, None)


@pytest.mark.parametrize("stats", [None, "{}", '{"numRecords":-1}', '{"numRecords":"many"}', "not json"])
def test_a_file_without_a_count_leaves_the_count_open(stats):
    table = Table.create(place(), pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    files = table.snapshot().files()
    files = files.set_column(files.column_names.index("stats"), "stats", pa.array([stats], pa.string()))
    actual = RowStatistics(files, ())
    assert (actual.count(), actual.first(1), actual.living_files()) == (None, None, None)


def test_bounds_that_are_not_tight_are_not_the_least_and_the_greatest():
    table = Table.create(place(), pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    files = table.snapshot().files()
    text = files["stats"][0].as_py().replace("}", "}", 1)[:-1] + ',"tightBounds":false}'
    wide = files.set_column(files.column_names.index("stats"), "stats", pa.array([text], pa.string()))
    column = table.snapshot().schema.find("id")
    assert RowStatistics(wide, ()).bounds(column) is None
    assert RowStatistics(wide, ()).count() == 2
