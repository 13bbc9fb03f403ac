"""What holds of any Delta table, whoever wrote it and whatever it holds: each law as a function that raises `AssertionError`.

    from tahoe.testing.table_laws import assert_laws

    def test_my_pipeline_leaves_a_sound_table(tmp_path):
        run_my_pipeline(tmp_path)
        assert_laws(Table(tmp_path))

Rows are compared in Python, version by version: this is for the tables of tests, not for large ones. Needs nothing beside Tahoe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tahoe.exceptions import NotFound
from tahoe.log.replay import add_files
from tahoe.protocol.actions import AddFile
from tahoe.protocol.row_tracking import has_row_tracking
from tahoe.schema.types import PrimitiveType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.table import Table

__all__ = [
    "SIGNS",
    "assert_feed_leads_from_version_to_version",
    "assert_files_hold_as_many_rows_as_they_say",
    "assert_filters_part_the_rows",
    "assert_laws",
    "assert_nothing_is_wrong",
    "assert_row_ids_are_unique",
    "after_changes",
    "conditions_on",
    "counted_rows",
    "versions_of",
]

SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
"""What a row of the change data feed, by its ``_change_type``, does to the number of such rows."""


def assert_laws(
    table: Table, *, versions: Sequence[int] | None = None, conditions: Sequence[str] | None = None, deep: bool = True
) -> None:
    """Hold every law of this module against a table.

    Args:
        table: it is only read.
        versions: to read rows of; None for all that the log leads to. Name those whose data files are there still, where files of
            older versions were deleted.
        conditions: to part the newest rows by; None for those of `conditions_on`.
        deep: let `Table.check` read data files too.

    Raises:
        AssertionError: the first law that does not hold, with versions and rows.
        TahoeError: a version cannot be read at all.
    """
    assert_nothing_is_wrong(table, deep=deep)
    read = versions_of(table) if versions is None else sorted(versions)
    assert_files_hold_as_many_rows_as_they_say(table, read)
    assert_feed_leads_from_version_to_version(table, read)
    assert_row_ids_are_unique(table, read)
    assert_filters_part_the_rows(table, conditions_on(table) if conditions is None else conditions)


def assert_nothing_is_wrong(table: Table, *, deep: bool = True) -> None:
    """`Table.check` finds nothing: log, checkpoints, checksums, files, vectors, and with `deep` what data files hold."""
    violations = table.check(deep=deep)
    assert not violations, f"{table.url}: " + "; ".join(map(str, violations))


def assert_files_hold_as_many_rows_as_they_say(table: Table, versions: Iterable[int]) -> None:
    """A version has as many rows as its files' statistics count, less those that deletion vectors take."""
    for version in versions:
        told = [_living(add) for add in add_files(table.snapshot(version).files())]
        counts = [count for count in told if count is not None]
        rows = table.to_arrow(version=version).num_rows
        assert len(counts) < len(told) or rows == sum(counts), (
            f"{table.url}, version {version}: {rows} rows are read, the log counts {sum(counts)}"
        )


def assert_feed_leads_from_version_to_version(table: Table, versions: Iterable[int]) -> None:
    """The rows of a version, less those that the change data feed takes and with those it brings, are the rows of the next.

    Held from each of the versions to the one after it, where that one has a feed and the same columns.
    """
    before: tuple[Snapshot, Counter[str]] | None = None
    for version in versions:
        snapshot = table.snapshot(version)
        rows = counted_rows(table.to_arrow(version=version))
        if before is not None and before[0].version == version - 1 and _has_feed_from(before[0], snapshot):
            told = after_changes(before[1], table.changes(version, version))
            assert told == rows, f"{table.url}, version {version}: the feed leads to {_difference(told, rows)}"
        before = snapshot, rows


def assert_row_ids_are_unique(table: Table, versions: Iterable[int]) -> None:
    """No two rows of a version have one row id, and each has one, where the table tracks rows."""
    for version in versions:
        if has_row_tracking(table.snapshot(version).config):
            ids = table.to_arrow(version=version, row_ids=True)["_row_id"].to_pylist()
            again = [number for number, times in Counter(ids).items() if number is None or times > 1]
            assert not again, f"{table.url}, version {version}: row ids that several rows have, or none: {again[:5]}"


def assert_filters_part_the_rows(table: Table, conditions: Iterable[str]) -> None:
    """A condition is true, false or NULL for each row: what the three filters read is together what is read without one.

    A file that was skipped and should not have been is missed by none of the three.

    Args:
        table: its newest version is read.
        conditions: in SQL; whatever `Table.to_arrow` takes as a filter.
    """
    version = table.version()
    rows = counted_rows(table.to_arrow(version=version))
    for condition in conditions:
        parts = (condition, f"not ({condition})", f"({condition}) is null")
        found: Counter[str] = Counter()
        for part in parts:
            found += counted_rows(table.to_arrow(version=version, filter=part))
        assert found == rows, f"{table.url}, version {version}: filtered by {condition}: {_difference(found, rows)}"


def conditions_on(table: Table) -> list[str]:
    """Conditions on the columns of a table: for each of a plain type, whether it is NULL; for numbers and texts, a value from its middle."""
    rows = table.to_arrow()
    conditions = []
    for column in table.schema():
        if not isinstance(column.data_type, PrimitiveType) or column.data_type.name == "variant":
            continue
        name = f"`{column.name.replace('`', '``')}`"
        conditions.append(f"{name} is null")
        literals = sorted(value for value in rows[column.name].to_pylist() if _is_plain(value))
        if literals:
            middle = literals[len(literals) // 2]
            conditions += [f"{name} {operator} {_literal(middle)}" for operator in ("<", "=")]
    return conditions


def versions_of(table: Table) -> list[int]:
    """The versions that the log leads to, oldest first: those from version 0, or from the oldest checkpoint, on."""
    versions = sorted(commit["version"] for commit in table.history())
    for position, version in enumerate(versions):
        try:
            table.snapshot(version)
        except NotFound:
            continue  # its commit is there, but neither version 0 nor a checkpoint before it
        return versions[position:]
    return []


def counted_rows(rows: pa.Table) -> Counter[str]:
    """Rows as a multiset, each as the text of its values: so may be counted what cannot be hashed, and NaN equals itself."""
    return Counter(repr(tuple(row.values())) for row in rows.to_pylist())


def after_changes(before: Mapping[str, int], changes: pa.Table) -> Counter[str]:
    """The rows after what a change data feed tells.

    Args:
        before: the rows before it, as `counted_rows` gives them.
        changes: of `Table.changes`.

    Returns:
        The rows, without those whose count is zero. A count below zero: a row was taken that was not there.
    """
    rows: Counter[str] = Counter(before)
    for change in changes.to_pylist():
        kind = change.pop("_change_type")
        values = tuple(value for name, value in change.items() if name not in ("_commit_version", "_commit_timestamp"))
        rows[repr(values)] += SIGNS[kind]
    return Counter({row: count for row, count in rows.items() if count})


def _living(add: AddFile) -> int | None:
    dead = add.deletion_vector.cardinality if add.deletion_vector else 0
    return None if add.num_records is None else add.num_records - dead


def _has_feed_from(before: Snapshot, snapshot: Snapshot) -> bool:
    same = before.metadata.schema_string == snapshot.metadata.schema_string
    return same and before.partition_columns == snapshot.partition_columns and snapshot.config.properties.enable_change_data_feed


def _difference(found: Counter[str], expected: Counter[str]) -> str:
    """A few rows that are too many and a few that are missing."""
    names = ("too many", "missing")
    sides = zip(names, ((found - expected), (expected - found)), strict=True)
    return ", ".join(f"{sum(rows.values())} rows {name}, such as {list(rows)[:3]}" for name, rows in sides if rows)


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _literal(value: int | str) -> str:
    if isinstance(value, int):
        return str(value)
    text = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
