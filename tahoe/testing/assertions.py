"""Assertions about tables with readable differences: rows, history, change feed and schema.

    assert_rows(table, [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])

They accept a `tahoe.Table`, a `tahoe.DeltaTable` and the path of a table; those of rows and schemas also a Snapshot, a Spark DataFrame and
Arrow data. All rows are read into memory: this is for test tables. Needs only Tahoe.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, TypeGuard, runtime_checkable

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.schema.schema_forms import SchemaLike, schema_of
from tahoe.schema.types import StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.testing.row_differences import Comparison, Row, differences

__all__ = ["assert_changes", "assert_history", "assert_rows", "assert_schema"]


@runtime_checkable
class SparkFrame(Protocol):
    """A DataFrame of PySpark."""

    def toArrow(self) -> pa.Table:  # noqa: N802 - PySpark's name
        """Return all rows."""


@runtime_checkable
class SparkTable(Protocol):
    """A `tahoe.DeltaTable`, which imports Spark and so is not imported here."""

    def toDF(self) -> SparkFrame:  # noqa: N802 - delta-spark's name
        """Return the table's rows."""

    def _plain_table(self) -> Table:
        """Return the table without Spark."""


TableLike: TypeAlias = Table | SparkTable | str | os.PathLike[str]
RowsLike: TypeAlias = TableLike | Snapshot | SparkFrame | pa.Table | Sequence[Row]


def assert_rows(
    actual: RowsLike, expected: RowsLike, *, key: str | Sequence[str] = (), tolerance: float = 0.0, columns: Sequence[str] = ()
) -> None:
    """Compare rows regardless of their order.

    Args:
        expected: rows as mappings, or anything that `actual` may be. Each value is converted to the type of its column.
        key: columns that identify a row; the message then shows the columns that differ.
        tolerance: the greatest difference of two floats that are equal, relative or, near zero, absolute.
        columns: compare these columns only; without any, all of them.

    Raises:
        AssertionError: the rows differ, the columns differ, or an expected value does not fit its column.
        ValueError: two expected rows have the same key.
    """
    __tracebackhide__ = True
    rows = _arrow(actual)
    expected_rows: Sequence[Row] = expected if _is_list(expected) else _arrow(expected).to_pylist()
    _compare(f"rows of {_name(actual)}", rows, expected_rows, _comparison(key, tolerance), columns)


def assert_changes(
    table: TableLike,
    start: int,
    expected: Sequence[Row],
    *,
    end: int | None = None,
    key: str | Sequence[str] = (),
    tolerance: float = 0.0,
) -> None:
    """Compare the change data feed from version `start` to `end`, both included, regardless of the order of rows.

    Args:
        expected: rows with ``_change_type``, and with ``_commit_version`` if that is to be compared.
        end: the newest version by default.
        key, tolerance: see `assert_rows`.

    Raises:
        AssertionError: the changes differ.
        TahoeError: the table has no change feed for these versions.
    """
    __tracebackhide__ = True
    plain = _table(table)
    changes = plain.changes(start, end)
    ignored = {"_commit_timestamp"} | ({"_commit_version"} if not any("_commit_version" in row for row in expected) else set())
    last = plain.version() if end is None else end
    columns = [name for name in changes.column_names if name not in ignored]
    title = f"changes of {plain.url} from version {start} to {last}"
    _compare(title, changes.select(columns), expected, _comparison(key, tolerance), ())


def assert_history(table: TableLike, expected: Sequence[str | Mapping[str, object]], *, start: int = 0) -> None:
    """Compare the commits of the history, oldest first.

    Args:
        expected: for each version an operation, such as ``MERGE``, or some columns of `Table.history` with their values. A mapping of
            strings in them, such as ``operationParameters``, may be incomplete.
        start: the version of the first expected commit; all commits from it on are expected.

    Raises:
        AssertionError: there are other commits.
    """
    __tracebackhide__ = True
    plain = _table(table)
    commits = [commit for commit in reversed(plain.history()) if commit["version"] >= start]
    expected_commits: list[Mapping[str, object]] = [{"operation": item} if isinstance(item, str) else item for item in expected]
    lines = []
    for version in range(start, start + max(len(commits), len(expected_commits))):
        commit = next((commit for commit in commits if commit["version"] == version), None)
        item = expected_commits[version - start] if version - start < len(expected_commits) else None
        lines += _commit_difference(version, commit, item)
    _fail_with(f"history of {plain.url} from version {start}", lines)


def assert_schema(actual: RowsLike, expected: SchemaLike) -> None:
    """Compare the columns: their names, order and types.

    Args:
        expected: a schema of pyarrow, PySpark or Delta, or names and types: ``{"id": "long", "name": "string"}``. The first three also
            state which columns may be null, and then that is compared too.

    Raises:
        AssertionError: the schemas differ.
    """
    __tracebackhide__ = True
    actual_schema = _schema(actual)
    expected_schema = schema_of(expected)
    names, wanted_names = [column.name for column in actual_schema], [column.name for column in expected_schema]
    lines = [f"- {column.name} {column.data_type}: missing" for column in expected_schema if column.name not in names]
    lines += [f"+ {column.name} {column.data_type}: not expected" for column in actual_schema if column.name not in wanted_names]
    for column in expected_schema:
        if column.name not in names:
            continue
        other = actual_schema.field(column.name)
        if str(other.data_type) != str(column.data_type):
            lines.append(f"  {column.name} is {other.data_type}, expected {column.data_type}")
        elif not isinstance(expected, Mapping) and other.nullable != column.nullable:
            lines.append(f"  {column.name} {_nullability(other.nullable)}, expected that it {_nullability(column.nullable)}")
    if not lines and names != wanted_names:
        lines.append(f"  the order is {', '.join(names)}, expected {', '.join(wanted_names)}")
    _fail_with(f"schema of {_name(actual)}", lines)


def _compare(title: str, actual: pa.Table, expected: Sequence[Row], comparison: Comparison, columns: Sequence[str]) -> None:
    __tracebackhide__ = True
    names = [name for name in actual.column_names if not columns or name in columns]
    needed = columns or dict.fromkeys(name for row in expected for name in row)
    lines = [f"- column {name}: missing" for name in (*needed, *comparison.key) if name not in actual.column_names]
    for place, row in enumerate(expected):
        lines += [f"  expected row {place} has no value for column {name}: {dict(row)}" for name in names if name not in row][:1]
    if not lines:
        selected = actual.select(names)
        lines = differences(selected.to_pylist(), _converted(title, expected, selected.schema), comparison)
    _fail_with(title, lines)


def _converted(title: str, rows: Sequence[Row], schema: pa.Schema) -> list[Row]:
    """Return the rows with the values that Arrow gives for their types, as in the actual rows."""
    converted: dict[str, list[object]] = {}
    for column in schema:
        values = [row[column.name] for row in rows]
        try:
            converted[column.name] = pa.array(values, column.type).to_pylist()
        except (pa.ArrowException, TypeError, ValueError) as error:
            message = f"{title}: an expected value of column {column.name} does not fit its type {column.type}: {error}"
            raise AssertionError(message) from None
    return [{name: values[place] for name, values in converted.items()} for place in range(len(rows))]


def _commit_difference(version: int, commit: Mapping[str, object] | None, expected: Mapping[str, object] | None) -> list[str]:
    if commit is None:
        return [f"- version {version}: missing, expected {_shown(expected or {})}"]
    if expected is None:
        return [f"+ version {version}: {commit['operation']} is not expected"]
    return [
        f"  version {version}: {name} is {commit.get(name)!r}, expected {value!r}"
        for name, value in expected.items()
        if not _contains(commit.get(name), value)
    ]


def _contains(actual: object, expected: object) -> bool:
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return all(name in actual and actual[name] == value for name, value in expected.items())
    return actual == expected


def _shown(expected: Mapping[str, object]) -> str:
    return str(expected["operation"]) if expected.keys() == {"operation"} else repr(dict(expected))


def _fail_with(title: str, lines: Sequence[str]) -> None:
    __tracebackhide__ = True  # pytest then shows the line of the test
    if lines:
        raise AssertionError("\n".join([f"unexpected {title}:", *lines]))


def _comparison(key: str | Sequence[str], tolerance: float) -> Comparison:
    return Comparison((key,) if isinstance(key, str) else tuple(key), tolerance)


def _nullability(nullable: bool) -> str:
    return "may be null" if nullable else "may not be null"


def _table(table: TableLike) -> Table:
    if isinstance(table, Table):
        return table
    return Table(table) if isinstance(table, str | os.PathLike) else table._plain_table()


def _is_list(rows: RowsLike) -> TypeGuard[Sequence[Row]]:
    return isinstance(rows, Sequence) and not isinstance(rows, str)


def _arrow(rows: RowsLike) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, Table):
        return rows.to_arrow()
    if isinstance(rows, Snapshot):
        return rows.scan().to_arrow()
    if isinstance(rows, SparkFrame):
        return rows.toArrow()
    if isinstance(rows, SparkTable):
        return rows.toDF().toArrow()
    if isinstance(rows, str | os.PathLike):
        return Table(rows).to_arrow()
    raise TypeError(f"Rows are a table, its path, a Snapshot, a Spark DataFrame or a pyarrow.Table, found {type(rows).__name__}.")


def _schema(rows: RowsLike) -> StructType:
    if isinstance(rows, Table | SparkTable | str | os.PathLike):
        return _table(rows).schema()
    return rows.schema if isinstance(rows, Snapshot) else schema_of(_arrow(rows).schema)


def _name(rows: RowsLike) -> str:
    if isinstance(rows, Snapshot):
        return f"{rows.store.url}, version {rows.version}"
    if isinstance(rows, Table | SparkTable | str | os.PathLike):
        plain = _table(rows)
        return f"{plain.url}, version {plain.version()}"
    return "the data"
