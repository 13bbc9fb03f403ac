"""Iceberg tables that are partitioned by transforms, as tables with generated columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as TheirTable
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.log.files.live_files import add_files
from tahoe.ops.copies.convert import ConvertRequest, convert
from tahoe.ops.copies.iceberg_partitions import Partition, partition_values
from tahoe.ops.copies.iceberg_snapshot import IcebergFile
from tahoe.ops.copies.iceberg_table import IcebergRequest, iceberg_table
from tahoe.schema.types import PrimitiveType, StructType
from tests.iceberg_rows import append_partitioned

NIGHT = (
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(1970, 1, 1),
    datetime(2024, 2, 29, 23, 30),
    datetime(2024, 3, 1),
    None,
)
ROWS = pa.table({
    "id": pa.array([1, -1, -10, 10, None], pa.int64()),
    "i": pa.array([7, -7, 8, None, -(2**31) + 8], pa.int32()),
    "at": pa.array([at and at.replace(tzinfo=UTC) for at in NIGHT], pa.timestamp("us", "UTC")),
    "n": pa.array(NIGHT, pa.timestamp("us")),
    "d": [at and at.date() for at in NIGHT],
    "s": ["abc", "é𝄞z", "ab", None, "x"],
})  # fmt: skip
KINDS = [
    ("at", YearTransform(), "year(at)", "integer", ["1969", "1970", "2024", "2024", None]),
    ("d", YearTransform(), "year(d)", "integer", ["1969", "1970", "2024", "2024", None]),
    ("at", MonthTransform(), "date_format(at, 'yyyy-MM')", "string", ["1969-12", "1970-01", "2024-02", "2024-03", None]),
    ("d", MonthTransform(), "date_format(d, 'yyyy-MM')", "string", ["1969-12", "1970-01", "2024-02", "2024-03", None]),
    ("at", DayTransform(), "cast(at as date)", "date", ["1969-12-31", "1970-01-01", "2024-02-29", "2024-03-01", None]),
    ("n", DayTransform(), "cast(n as date)", "date", ["1969-12-31", "1970-01-01", "2024-02-29", "2024-03-01", None]),
    ("d", DayTransform(), "cast(d as date)", "date", ["1969-12-31", "1970-01-01", "2024-02-29", "2024-03-01", None]),
    *(
        (name, HourTransform(), f"date_format({name}, 'yyyy-MM-dd-HH')", "string", hours)
        for hours in [["1969-12-31-23", "1970-01-01-00", "2024-02-29-23", "2024-03-01-00", None]]
        for name in ("at", "n")
    ),
    ("id", TruncateTransform(10), "id - ((id % 10) + 10) % 10", "long", ["0", "-10", "-10", "10", None]),
    ("i", TruncateTransform(8), "i - ((i % 8) + 8) % 8", "integer", ["0", "-8", "8", None, "-2147483640"]),
    ("s", TruncateTransform(2), "substring(s, 0, 2)", "string", ["ab", "é𝄞", "ab", None, "x"]),
]
FILTERS = {  # and how many files of five are read
    "at = '1969-12-31 23:59:59.999999'": 2,  # in another time zone than that of who wrote it, a time is of the day after
    "at >= '2024-02-29 23:30:00'": 2,
    "n < '1970-01-01 00:00:00'": 3,  # the log has an empty text as NULL, so partitions of texts that are NULL stay
    "n = '2024-03-01 00:00:00'": 3,
    "d <= '1969-12-31'": 3,  # and a date that a time zone never had is of the day after
    "d IS NULL": 1,
    "id < 0": 5,  # truncation of a number implies only equality, as in delta-spark
    "id = -10": 2,
    "i IN (7, -7)": 2,
    "s = 'abc'": 3,
    "s >= 'b'": 3,
    "s IS NULL": 1,
}


@pytest.fixture
def catalog(tmp_path: Path):
    made = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    made.create_namespace("db")
    yield made
    made.engine.dispose()


def partitioned(catalog: SqlCatalog, *by: tuple, rows: pa.Table = ROWS) -> TheirTable:
    """Args: by: of each field the column, the transform and the name."""
    theirs = catalog.create_table("db.t", rows.schema)
    with theirs.update_spec() as change:
        for field in by:
            change.add_field(*field)
    return theirs


def of(theirs: TheirTable) -> Table:
    return Table(theirs.location().removeprefix("file://"))


def in_order(rows: pa.Table) -> list:
    return sorted(rows.select(ROWS.column_names).to_pylist(), key=str)


def without_statistics(table: Table) -> Table:
    """Only partitions can leave out files then."""
    table.convert_to_delta(statistics=False)
    return table


@pytest.mark.parametrize(("source", "transform", "expression", "kind", "texts"), KINDS, ids=str)
def test_each_transform_is_a_generated_column(catalog, source, transform, expression, kind, texts):
    theirs = partitioned(catalog, (source, transform, "part of it"))
    append_partitioned(theirs, ROWS)
    table = without_statistics(of(theirs))
    column = table.snapshot().schema.field("part of it")
    assert (column.metadata["delta.generationExpression"], str(column.data_type)) == (expression, kind)
    assert (column.field_id, column.physical_name) == (7, "part of it")
    assert table.snapshot().partition_columns == ("part of it",)
    values = [add.partition_values["part of it"] for add in add_files(table.snapshot().files())]
    assert sorted(map(str, values)) == sorted({str(text) for text in texts})
    assert in_order(table.to_arrow()) == in_order(theirs.scan().to_arrow())
    table.append(ROWS)  # the table gives the same rows the same values
    actual = table.to_arrow().to_pylist()
    assert sorted(map(str, actual)) == sorted(2 * [*map(str, table.to_arrow(version=0).to_pylist())])
    assert table.check(deep=True) == []


def test_filters_on_the_columns_leave_out_files_and_no_row(catalog, tmp_path):
    theirs = partitioned(
        catalog,
        ("at", DayTransform(), "at_day"),
        ("n", HourTransform(), "n_hour"),
        ("d", MonthTransform(), "d_month"),
        ("id", TruncateTransform(10), "id_trunc"),
        ("i", TruncateTransform(8), "i_trunc"),
        ("s", TruncateTransform(2), "s_trunc"),
        ("id", BucketTransform(4), "some"),
    )
    append_partitioned(theirs, ROWS)
    table = without_statistics(of(theirs))
    assert len(table.snapshot().partition_columns) == 6 and table.snapshot().num_files == 5
    plain = Table.create(tmp_path / "plain", ROWS.schema)
    plain.append(ROWS)
    for where in FILTERS:
        assert in_order(table.to_arrow(filter=where)) == in_order(plain.to_arrow(filter=where)), where
    assert {where: table.files(where).num_rows for where in FILTERS} == FILTERS


def test_clones(catalog, tmp_path):
    theirs = partitioned(catalog, ("d", YearTransform(), "d_year"))
    append_partitioned(theirs, ROWS)
    for shallow in (True, False):
        of(theirs).clone(tmp_path / f"clone-{shallow}", shallow=shallow)
        clone = Table(tmp_path / f"clone-{shallow}")
        assert in_order(clone.to_arrow()) == in_order(ROWS) and clone.snapshot().partition_columns == ("d_year",)
        assert clone.check(deep=True) == []
    with theirs.update_schema() as change:
        change.add_column("more", theirs.schema().find_type("id"))  # gets the id that the generated column of the first clone has
    append_partitioned(theirs, ROWS.append_column("more", pa.array([1, 2, 3, 4, 5], pa.int64())))
    of(theirs).clone(tmp_path / "clone-False", replace=True)
    clone = Table(tmp_path / "clone-False")
    actual = [{name: row[name] for name in (*ROWS.column_names, "more")} for row in clone.to_arrow().to_pylist()]
    assert sorted(map(str, actual)) == sorted(map(str, theirs.scan().to_arrow().select([*ROWS.column_names, "more"]).to_pylist()))
    assert clone.to_arrow(filter="d = '1970-01-01'").num_rows == 2 and clone.check(deep=True) == []


def test_names_are_quoted_where_that_is_needed_and_columns_may_lie_in_structs(catalog):
    kind = pa.struct([("made at", pa.date32()), ("x`y", pa.string())])
    rows = pa.table({"a b": pa.array([{"made at": date(2026, 3, 1), "x`y": "text"}, None], kind)})
    theirs = partitioned(catalog, ("a b.made at", MonthTransform(), "month"), ("a b.x`y", TruncateTransform(1), "A"), rows=rows)
    append_partitioned(theirs, rows)
    table = of(theirs)
    table.convert_to_delta()
    month, letter = (table.snapshot().schema.field(name) for name in ("month", "A"))
    assert month.metadata["delta.generationExpression"] == "date_format(`a b`.`made at`, 'yyyy-MM')"
    assert letter.metadata["delta.generationExpression"] == "substring(`a b`.`x``y`, 0, 1)"
    assert table.to_arrow(filter="`a b`.`made at` = '2026-03-01'").to_pylist() == [
        {**rows.to_pylist()[0], "month": "2026-03", "A": "t"}
    ]
    assert table.check(deep=True) == []


def test_a_column_that_had_the_name_of_the_partition_keeps_its_physical_name(catalog):
    theirs = catalog.create_table("db.t", pa.schema([("d", pa.date32()), ("d_year", pa.int64())]))
    theirs.append(pa.table({"d": pa.array([], pa.date32()), "d_year": pa.array([], pa.int64())}))
    with theirs.update_schema() as change:
        change.rename_column("d_year", "old")
    with theirs.update_spec() as change:
        change.add_field("d", YearTransform(), "d_year")
    append_partitioned(theirs, pa.table({"d": [date(2026, 1, 1)], "old": pa.array([5], pa.int64())}))
    table = of(theirs)
    table.convert_to_delta()
    assert table.to_arrow().to_pylist() == [{"d": date(2026, 1, 1), "old": 5, "d_year": 2026}]
    assert table.check(deep=True) == []


# -- refusals ----------------------------------------------------------------------------------------------------------------


def refused(table: Table, kind: type = Unsupported, zone: str = "UTC") -> str:
    with pytest.raises(kind) as caught:
        convert(table.begin, table.commit, lambda _: iceberg_table(table.store, IcebergRequest(time_zone=zone)), ConvertRequest())
    assert not table.exists()
    return caught.value.code


@pytest.mark.parametrize(
    ("source", "transform", "zone", "is_refused"),
    [
        ("at", YearTransform(), "Europe/Berlin", True),
        ("at", DayTransform(), "+01:00", True),
        ("at", HourTransform(), "Africa/Abidjan", True),
        ("n", HourTransform(), "America/New_York", True),
        ("n", MonthTransform(), "America/New_York", False),
        ("d", MonthTransform(), "Europe/Berlin", False),
        ("at", IdentityTransform(), "Europe/Berlin", False),
        ("s", TruncateTransform(2), "Europe/Berlin", False),
        *(("at", HourTransform(), zone, False) for zone in ("UTC", "Etc/UTC", "Z", "GMT", "+00:00", "UTC+0", "GMT-00:00")),
    ],
)
def test_transforms_that_depend_on_the_time_zone_are_converted_in_utc_alone(catalog, source, transform, zone, is_refused):
    theirs = partitioned(catalog, (source, transform, source if transform == IdentityTransform() else "p"))
    table = of(theirs)
    if is_refused:
        assert refused(table, zone=zone) == "TAHOE_ICEBERG_PARTITION_TIME_ZONE"
    else:
        iceberg_table(table.store, IcebergRequest(time_zone=zone))


@pytest.mark.parametrize(
    ("kind", "transform"),
    [
        (pa.decimal128(9, 2), TruncateTransform(10)),
        (pa.binary(), TruncateTransform(2)),
        (pa.int32(), TruncateTransform(2**30 + 1)),
    ],
)
def test_transforms_that_no_expression_gives_are_refused(catalog, kind, transform):
    theirs = partitioned(catalog, ("c", transform, "p"), rows=pa.table({"c": pa.array([], kind)}))
    assert refused(of(theirs)) == "TAHOE_ICEBERG_PARTITION_TRANSFORM"


def test_a_partition_that_is_called_like_a_column_but_for_the_case_is_refused(catalog):
    theirs = partitioned(catalog, ("d", YearTransform(), "ID"))
    append_partitioned(theirs, ROWS)
    assert refused(of(theirs), InvalidRequest) == "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"


def test_files_of_another_transform_are_refused(catalog):
    theirs = partitioned(catalog, ("d", MonthTransform(), "d_month"))
    append_partitioned(theirs, ROWS)
    with theirs.update_spec() as change:
        change.remove_field("d_month")
        change.add_field("d", DayTransform(), "d_day")
    code = "DELTA_CLONE_INCOMPATIBLE_SOURCE.ICEBERG_UNDERGONE_PARTITION_EVOLUTION"
    assert refused(of(theirs), InvalidRequest) == code


@pytest.mark.parametrize(
    ("source", "transform", "rows", "value"),
    [
        ("at", DayTransform(), ROWS.slice(0, 1), 0),  # as old versions of Iceberg rounded
        ("at", DayTransform(), ROWS.slice(1, 2), 0),
        ("d", MonthTransform(), ROWS.slice(1, 1), None),
        ("id", TruncateTransform(10), ROWS.slice(0, 2), 0),
        ("i", TruncateTransform(10), ROWS.slice(0, 1).set_column(1, "i", pa.array([-(2**31)], pa.int32())), -(2**31)),
        ("d", YearTransform(), ROWS.slice(1, 1), 8030),
        ("d", YearTransform(), ROWS.slice(1, 1), -1970),
    ],
)
@pytest.mark.parametrize("statistics", [True, False])
def test_values_that_are_not_those_of_the_rows_or_that_no_text_shows_are_refused(
    catalog, source, transform, rows, value, statistics
):
    theirs = partitioned(catalog, (source, transform, source if transform == IdentityTransform() else "p"))
    append_partitioned(theirs, rows, partition=(value,))
    with pytest.raises(Unsupported) as caught:
        of(theirs).convert_to_delta(statistics=statistics)
    assert caught.value.code == "TAHOE_ICEBERG_PARTITION_VALUE" and not of(theirs).exists()


@pytest.mark.parametrize(
    ("transform", "kind", "value"), [("hour", "string", 10**9), ("day", "date", 10**8), ("identity", "timestamp", 10**18)]
)
def test_times_that_python_has_not_are_refused(transform, kind, value):
    """PyIceberg does not write them."""
    partition = Partition(1, transform, "p", (), PrimitiveType(kind), None)
    file = IcebergFile("x", "x", 1, 1, 1, {(1, transform): value})
    with pytest.raises(Unsupported) as caught:
        partition_values(file, [partition], StructType(()), "t")
    assert caught.value.code == "TAHOE_ICEBERG_PARTITION_VALUE"


def test_an_empty_text_is_no_partition(catalog):
    theirs = partitioned(catalog, ("s", TruncateTransform(2), "p"))
    append_partitioned(theirs, ROWS.slice(0, 1).set_column(5, "s", pa.array([""])))
    assert refused(of(theirs)) == "TAHOE_ICEBERG_EMPTY_PARTITION_VALUE"
