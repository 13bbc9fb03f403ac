"""PyIceberg and DuckDB read tables of UniForm with the rows of the Delta table: now, at old snapshots, through filters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tahoe
from tahoe.log.replay import add_files
from tahoe.txn.transaction import Operation
from tests.interop.engines import canonical
from tests.interop.iceberg import duckdb_directory, duckdb_iceberg, pyiceberg_table, read_pyiceberg

UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
PER_COMMIT = {"delta.universalFormat.config.iceberg.snapshot-per-commit": "true"}
Reader = Callable[..., pa.Table]
READERS = [pytest.param(read_pyiceberg, id="pyiceberg"), pytest.param(duckdb_iceberg, id="duckdb")]

NUMBERS = pa.schema([("id", pa.int64()), ("name", pa.string())])


def numbers(first: int, last: int) -> pa.Table:
    return pa.table({"id": range(first, last), "name": [f"n{i}" for i in range(first, last)]}, schema=NUMBERS)


def location(table: tahoe.Table) -> str:
    """The metadata of the newest version, converted now if it is not yet."""
    return table.uniform.sync().metadata_location


def snapshot_of(table: tahoe.Table, version: int) -> int:
    """Iceberg's id of the snapshot that shows a Delta version."""
    for snapshot in pyiceberg_table(location(table)).snapshots():
        if snapshot.summary["delta-version"] == str(version):
            return snapshot.snapshot_id
    raise AssertionError(f"no snapshot shows version {version}")


@pytest.fixture
def table(tmp_path: Path) -> tahoe.Table:
    """Three commits: two appends and one overwrite of a part."""
    made = tahoe.Table.create(tmp_path / "a table", NUMBERS, properties={**UNIFORM, **PER_COMMIT})
    made.uniform.sync()  # the first conversion of a table shows its newest version alone; from here on each commit has a snapshot
    made.append(numbers(0, 10))
    made.append(numbers(10, 30), max_rows_per_file=5)
    made.overwrite(numbers(100, 105), replace_where="id >= 20")
    return made


@pytest.mark.parametrize("read", READERS)
def test_the_newest_rows_are_read(table: tahoe.Table, read: Reader) -> None:
    assert canonical(read(location(table))) == canonical(table.to_arrow())


def test_the_newest_rows_are_read_by_the_folder_alone(table: tahoe.Table, tmp_path: Path) -> None:
    location(table)
    assert canonical(duckdb_directory(tmp_path / "a table")) == canonical(table.to_arrow())


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_old_snapshot_is_read_as_the_version_was(table: tahoe.Table, read: Reader, version: int) -> None:
    actual = read(location(table), snapshot_id=snapshot_of(table, version))
    assert canonical(actual) == canonical(table.to_arrow(version=version))


def test_operations_are_named(table: tahoe.Table) -> None:
    snapshots = pyiceberg_table(location(table)).snapshots()
    assert [(s.summary["delta-version"], s.summary.operation.value) for s in snapshots if s.summary["delta-version"] != "0"] == [
        ("1", "append"),
        ("2", "append"),
        ("3", "overwrite"),
    ]
    assert snapshots[-1].summary["total-records"] == "25"


@pytest.mark.parametrize("read", READERS)
def test_an_empty_table_is_read_empty(tmp_path: Path, read: Reader) -> None:
    made = tahoe.Table.create(tmp_path / "t", NUMBERS, properties=UNIFORM)
    actual = read(location(made))
    assert actual.num_rows == 0
    assert actual.column_names == ["id", "name"]


@pytest.mark.parametrize("read", READERS)
def test_a_table_emptied_is_read_empty(tmp_path: Path, read: Reader) -> None:
    made = tahoe.Table.create(tmp_path / "t", NUMBERS, properties=UNIFORM)
    made.append(numbers(0, 10))
    location(made)
    made.overwrite(numbers(0, 0))
    assert read(location(made)).num_rows == 0


INSTANTS = [
    datetime(2013, 1, 1, 12, 30, 0, 123999, UTC),
    None,
    datetime(1900, 1, 1, tzinfo=UTC),
    datetime(2262, 1, 1, tzinfo=UTC),
]
ALL_TYPES = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "i32": pa.array([1, None, -(2**31), 2**31 - 1], pa.int32()),
        "i16": pa.array([1, None, -(2**15), 2**15 - 1], pa.int16()),
        "i8": pa.array([1, None, -128, 127], pa.int8()),
        "f32": pa.array([1.5, None, -0.0, float("inf")], pa.float32()),
        "f64": pa.array([1.5, None, float("nan"), float("-inf")], pa.float64()),
        "yes": pa.array([True, None, False, True]),
        "text": pa.array(["a", None, "", "größer than 'x' \" \\ 日本 \u2028"]),
        "raw": pa.array([b"\x00\xff", None, b"", b"abc"]),
        "day": pa.array([date(2013, 1, 1), None, date(1, 1, 1), date(9999, 12, 31)]),
        "at": pa.array(INSTANTS, pa.timestamp("us", "UTC")),
        "local": pa.array([None if at is None else at.replace(tzinfo=None) for at in INSTANTS], pa.timestamp("us")),
        "price": pa.array([Decimal("1.25"), None, Decimal("-99999999.99"), Decimal("0.00")], pa.decimal128(10, 2)),
        "wide": pa.array([Decimal(10) ** 37, None, Decimal(-1), Decimal(0)], pa.decimal128(38, 0)),
        "tags": pa.array([["x", None], None, [], ["y"]], pa.list_(pa.string())),
        "deep": pa.array([[[1], None, []], None, [], [[None]]], pa.list_(pa.list_(pa.int32()))),
        "scores": pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int32())),
        "place": pa.array(
            [{"x": 1, "y": {"z": "q"}}, None, {"x": None, "y": None}, {"x": 2, "y": {"z": None}}],
            pa.struct({"x": pa.int32(), "y": pa.struct({"z": pa.string()})}),
        ),
        "points": pa.array([[{"x": 1}], None, [], [None, {"x": None}]], pa.list_(pa.struct({"x": pa.int64()}))),
    }
)


@pytest.mark.parametrize("read", READERS)
def test_every_type_is_read_equal(tmp_path: Path, read: Reader) -> None:
    made = tahoe.Table.create(tmp_path / "t", ALL_TYPES.schema, properties=UNIFORM)
    made.append(ALL_TYPES)
    # PyIceberg 0.12 reads a list of structs that is null as an empty list, from any writer's files.
    rows = ALL_TYPES.drop_columns(["points"]) if read is read_pyiceberg else ALL_TYPES
    assert canonical(read(location(made)).select(rows.column_names)) == canonical(rows)


def test_pyiceberg_sees_iceberg_s_types(tmp_path: Path) -> None:
    made = tahoe.Table.create(tmp_path / "t", ALL_TYPES.schema, properties=UNIFORM)
    types = {field.name: str(field.field_type) for field in pyiceberg_table(location(made)).schema().fields}
    assert types["i8"] == types["i16"] == types["i32"] == "int"
    assert (types["at"], types["local"], types["wide"]) == ("timestamptz", "timestamp", "decimal(38, 0)")
    assert types["deep"] == "list<list<int>>"


ODD = ["", "a b", "50%", "%41", "ünïcode 日本", "a/b=c", "a:b?c#d", "quote ' \" \\", "__x__", ".", "+&", None]
PARTITIONED = {
    "text": (pa.string(), ODD),
    "day": (pa.date32(), [date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31), None]),
    "at": (pa.timestamp("us", "UTC"), INSTANTS),
    "local": (pa.timestamp("us"), [datetime(2013, 1, 1, 12, 30, 0, 123999), datetime(1969, 12, 31, 23, 59, 59), None]),
    "price": (pa.decimal128(10, 2), [Decimal("1.25"), Decimal("-99999999.99"), Decimal("0.00"), None]),
    "yes": (pa.bool_(), [True, False, None]),
    "i8": (pa.int8(), [-128, 127, 0, None]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "f64": (pa.float64(), [1.5, float("-inf"), 0.0, None]),
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("name", list(PARTITIONED))
def test_odd_partition_values_are_read_equal(tmp_path: Path, name: str, read: Reader) -> None:
    data_type, values = PARTITIONED[name]
    rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "p 1/ü": pa.array(values, data_type)})
    made = tahoe.Table.create(tmp_path / "t", rows.schema, partition_by=["p 1/ü"], properties=UNIFORM)
    made.append(rows)
    assert canonical(read(location(made))) == canonical(made.to_arrow())


@pytest.mark.parametrize("read", READERS)
def test_odd_partition_values_are_read_equal_in_hive_folders(tmp_path: Path, read: Reader) -> None:
    """Tables that got column mapping later keep their folders."""
    rows = pa.table({"id": pa.array(range(len(ODD)), pa.int64()), "p": pa.array(ODD)})
    made = tahoe.Table.create(
        tmp_path / "t", rows.schema, partition_by=["p"], properties={"delta.randomizeFilePrefixes": "false"}
    )
    made.set_properties({**UNIFORM, "delta.columnMapping.mode": "name"})
    made.append(rows)
    assert canonical(read(location(made))) == canonical(made.to_arrow())


CONDITIONS = [
    ("id >= 37", "id >= 37", lambda t: pc.greater_equal(t["id"], 37)),
    ("id < 3 or id > 95", "id < 3 or id > 95", lambda t: pc.or_(pc.less(t["id"], 3), pc.greater(t["id"], 95))),
    ("name = 'n7'", "name = 'n7'", lambda t: pc.equal(t["name"], "n7")),
    ("name > 'n90'", "name > 'n90'", lambda t: pc.greater(t["name"], "n90")),
    ("x = 0.0", "x = 0.0", lambda t: pc.equal(t["x"], 0.0)),
    ("x > 90.5", "x > 90.5", lambda t: pc.greater(t["x"], 90.5)),
    ("x is null", "x is null", lambda t: pc.is_null(t["x"])),
    ("day = '2024-01-05'", "day = DATE '2024-01-05'", lambda t: pc.equal(t["day"], date(2024, 1, 5))),
    ("price >= 20.01", "price >= 20.01", lambda t: pc.greater_equal(t["price"], Decimal("20.01"))),
    ("part = 3", "part = 3", lambda t: pc.equal(t["part"], 3)),
    ("part is null", "part is null", lambda t: pc.is_null(t["part"])),
    (
        "part in (1, 2) and id < 40",
        "part in (1, 2) and id < 40",
        lambda t: pc.and_(pc.less(t["id"], 40), pc.is_in(t["part"], pa.array([1, 2]))),
    ),
]


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> tahoe.Table:
    rows = pa.table(
        {
            "id": pa.array(range(100), pa.int64()),
            "name": pa.array([f"n{i}" for i in range(100)]),
            "x": pa.array([None if i % 10 == 9 else -0.0 if i == 50 else float(i) for i in range(100)], pa.float64()),
            "day": pa.array([date(2024, 1, 1) + timedelta(days=i // 10) for i in range(100)]),
            "price": pa.array([Decimal(i).scaleb(-1).quantize(Decimal("0.01")) * 3 for i in range(100)], pa.decimal128(9, 2)),
            "part": pa.array([None if i % 5 == 0 else i % 5 for i in range(100)], pa.int32()),
        }
    )
    made = tahoe.Table.create(tmp_path_factory.mktemp("many") / "t", rows.schema, partition_by=["part"], properties=UNIFORM)
    for first in range(0, 100, 25):
        made.append(rows.slice(first, 25), max_rows_per_file=4)
    return made


@pytest.mark.parametrize("condition", CONDITIONS, ids=[c[0] for c in CONDITIONS])
def test_a_filter_gives_the_rows_of_a_full_scan(many_files: tahoe.Table, condition: tuple) -> None:
    theirs, sql, mask = condition
    rows = many_files.to_arrow()
    expected = canonical(rows.filter(mask(rows)))
    assert expected, "the filter must leave rows to lose"
    assert canonical(read_pyiceberg(location(many_files), theirs)) == expected
    assert canonical(duckdb_iceberg(location(many_files), sql)) == expected


def test_filters_do_skip_files(many_files: tahoe.Table) -> None:
    iceberg = pyiceberg_table(location(many_files))
    assert len(list(iceberg.scan(row_filter="id = 37").plan_files())) < len(list(iceberg.scan().plan_files())) / 5
    assert len(list(iceberg.scan(row_filter="part = 3").plan_files())) < len(list(iceberg.scan().plan_files())) / 2


def test_rows_within_the_last_millisecond_of_a_file_are_not_skipped(tmp_path: Path) -> None:
    """Delta's statistics cut timestamps to milliseconds; taken as they are, readers would skip the file that has the row."""
    at = datetime(2024, 1, 1, 0, 0, 0, 123456, UTC)
    rows = pa.table({"at": pa.array([at], pa.timestamp("us", "UTC"))})
    made = tahoe.Table.create(tmp_path / "t", rows.schema, properties=UNIFORM)
    made.append(rows)
    restate(made, lambda name: {"minValues": {name: "2024-01-01T00:00:00.123Z"}, "maxValues": {name: "2024-01-01T00:00:00.123Z"}})
    assert read_pyiceberg(location(made), "at = '2024-01-01T00:00:00.123456+00:00'").num_rows == 1
    condition = "\"at\" = TIMESTAMPTZ '2024-01-01 00:00:00.123456+00'"
    assert duckdb_iceberg(location(made), condition).num_rows == 1


def test_a_null_count_that_is_missing_is_not_taken_for_none(tmp_path: Path) -> None:
    rows = pa.table({"x": pa.array([1, None], pa.int64())})
    made = tahoe.Table.create(tmp_path / "t", rows.schema, properties=UNIFORM)
    made.append(rows)
    restate(made, lambda name: {"minValues": {name: 1}, "maxValues": {name: 1}})
    assert read_pyiceberg(location(made), "x is null").num_rows == 1
    assert duckdb_iceberg(location(made), "x is null").num_rows == 1


def restate(table: tahoe.Table, statistics: Callable[[str], dict]) -> None:
    """Commit other statistics for the one file of a table of one column, as another Delta writer would have written them."""
    snapshot = table.snapshot()
    (add,) = add_files(snapshot.files())
    (column,) = snapshot.schema
    stats = json.dumps({"numRecords": json.loads(add.stats)["numRecords"], **statistics(column.physical_name)})
    transaction = table.begin()
    transaction.stage(replace(add, stats=stats, data_change=False))
    table.commit(transaction, Operation("COMPUTE STATS"))


@pytest.mark.parametrize("read", READERS)
def test_a_column_added_later_is_null_in_older_files(tmp_path: Path, read: Reader) -> None:
    made = tahoe.Table.create(tmp_path / "t", NUMBERS, properties={**UNIFORM, **PER_COMMIT})
    made.append(numbers(0, 3))
    location(made)
    wider = numbers(3, 6).append_column("extra", pa.array([1.5, 2.5, 3.5])).append_column("more", pa.array([[1], [2], None]))
    made.append(wider, merge_schema=True)
    assert canonical(read(location(made))) == canonical(made.to_arrow())
    assert read(location(made)).column_names == ["id", "name", "extra", "more"]
    old = read(location(made), snapshot_id=snapshot_of(made, 1))
    assert canonical(old.select(["id", "name"])) == canonical(numbers(0, 3))


@pytest.mark.parametrize("read", READERS)
def test_files_from_before_uniform_are_read_by_the_names_of_their_columns(tmp_path: Path, read: Reader) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "s": [{"x": 1}, {"x": None}], "p": ["a b", None]})
    made = tahoe.Table.create(tmp_path / "t", rows.schema, partition_by=["p"])
    made.append(rows)
    made.set_properties({**UNIFORM, "delta.columnMapping.mode": "name"})
    made.append(rows)
    assert canonical(read(location(made))) == canonical(made.to_arrow())


@pytest.mark.parametrize("read", READERS)
def test_a_checkpoint_with_statistics_as_columns_alone_is_enough(tmp_path: Path, read: Reader) -> None:
    properties = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
    rows = ALL_TYPES.drop_columns(["points"])
    made = tahoe.Table.create(tmp_path / "t", rows.schema, partition_by=["i8"], properties={**UNIFORM, **properties})
    for i in range(4):
        made.append(rows.slice(i, 1))
    made.checkpoint()
    fresh = tahoe.Table(tmp_path / "t")
    assert "stats_parsed" in fresh.files().column_names
    actual = fresh.uniform.sync(rebuild=True).metadata_location
    assert canonical(read(actual)) == canonical(rows)
    assert len(list(pyiceberg_table(actual).scan(row_filter="id = 3").plan_files())) == 1


@pytest.mark.parametrize("read", READERS)
def test_a_table_whose_schema_is_replaced_is_read(tmp_path: Path, read: Reader) -> None:
    made = tahoe.Table.create(tmp_path / "t", NUMBERS, properties=UNIFORM)
    made.append(numbers(0, 3))
    location(made)
    other = pa.table({"id": pa.array(["a", "b"]), "z": pa.array([[1.0], None])})
    made.overwrite(other, overwrite_schema=True)
    assert canonical(read(location(made))) == canonical(other)


@pytest.mark.parametrize("partition_by", [[], ["part"]])
def test_two_properties_make_an_older_table_readable(tmp_path: Path, partition_by: list[str]) -> None:
    rows = pa.table({"id": [1, 2, 3], "part": ["a", "b", "a"], "tags": [["x"], [], None]})
    table = tahoe.Table.create(tmp_path / "table", rows.schema, partition_by=partition_by)
    table.append(rows)
    table.set_properties({"delta.enableIcebergCompatV2": "true", "delta.universalFormat.enabledFormats": "iceberg"})
    table.append(rows)
    location = table.uniform.sync().metadata_location
    expected = canonical(table.to_arrow())
    assert canonical(read_pyiceberg(location)) == canonical(duckdb_iceberg(location)) == expected
