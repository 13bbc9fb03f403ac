"""Invariants of any Delta table, by any writer: each law is a function that raises `AssertionError`.

    from tahoe.testing.table_laws import assert_laws

    def test_my_pipeline_leaves_a_sound_table(tmp_path):
        run_my_pipeline(tmp_path)
        assert_laws(Table(tmp_path))

Rows are compared in Python, version by version: this is for test tables, not for large ones. Needs only Tahoe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from tahoe.api.table import Table
from tahoe.base.exceptions import NotFound
from tahoe.expr.tree.predicate import text_literal
from tahoe.log.replay import add_files
from tahoe.protocol.actions import AddFile
from tahoe.protocol.row_tracking import has_row_tracking
from tahoe.schema.types import PrimitiveType
from tahoe.snapshot.snapshot import Snapshot

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
"""How a row of the change data feed, by its ``_change_type``, changes the number of such rows."""


def assert_laws(
    table: Table, *, versions: Sequence[int] | None = None, conditions: Sequence[str] | None = None, deep: bool = True
) -> None:
    """Check a table against every law of this module.

    Args:
        table: it is only read.
        versions: versions whose rows to read; None for all in the log. If files of older versions were deleted, list the versions whose
            data files still exist.
        conditions: conditions for splitting the newest rows; None for those of `conditions_on`.
        deep: let `Table.check` read data files too.

    Raises:
        AssertionError: the first broken law, with versions and rows.
        TahoeError: a version cannot be read at all.
    """
    assert_nothing_is_wrong(table, deep=deep)
    read = versions_of(table) if versions is None else sorted(versions)
    assert_files_hold_as_many_rows_as_they_say(table, read)
    assert_feed_leads_from_version_to_version(table, read)
    assert_row_ids_are_unique(table, read)
    assert_filters_part_the_rows(table, conditions_on(table) if conditions is None else conditions)


def assert_nothing_is_wrong(table: Table, *, deep: bool = True) -> None:
    """Check that `Table.check` finds no error in log, checkpoints, checksums, files and vectors, and with `deep` in data files."""
    violations = table.check(deep=deep)
    assert not violations, f"{table.url}: " + "; ".join(map(str, violations))


def assert_files_hold_as_many_rows_as_they_say(table: Table, versions: Iterable[int]) -> None:
    """Check that a version has as many rows as its files' statistics count, minus those that deletion vectors delete."""
    for version in versions:
        row_counts = [_living(add) for add in add_files(table.snapshot(version).files())]
        counts = [count for count in row_counts if count is not None]
        rows = table.to_arrow(version=version).num_rows
        assert len(counts) < len(row_counts) or rows == sum(counts), (
            f"{table.url}, version {version}: {rows} rows are read, the log counts {sum(counts)}"
        )


def assert_feed_leads_from_version_to_version(table: Table, versions: Iterable[int]) -> None:
    """Check that the rows of a version, changed by the change data feed, are the rows of the next version.

    Checked from each of the versions to the next, if that one has a feed and the same columns.
    """
    before: tuple[Snapshot, Counter[str]] | None = None
    for version in versions:
        snapshot = table.snapshot(version)
        rows = counted_rows(table.to_arrow(version=version))
        if before is not None and before[0].version == version - 1 and _has_feed_from(before[0], snapshot):
            expected = after_changes(before[1], table.changes(version, version))
            assert expected == rows, f"{table.url}, version {version}: the feed leads to {_difference(expected, rows)}"
        before = snapshot, rows


def assert_row_ids_are_unique(table: Table, versions: Iterable[int]) -> None:
    """Check that every row of a version has a unique row id, if the table tracks rows."""
    for version in versions:
        if has_row_tracking(table.snapshot(version).config):
            ids = table.to_arrow(version=version, row_ids=True)["_row_id"].to_pylist()
            again = [number for number, times in Counter(ids).items() if number is None or times > 1]
            assert not again, f"{table.url}, version {version}: duplicate or missing row ids: {again[:5]}"


def assert_filters_part_the_rows(table: Table, conditions: Iterable[str]) -> None:
    """Check that the rows for which a condition is true, false and NULL are together all rows.

    A file that was skipped wrongly is missing in all three.

    Args:
        table: its newest version is read.
        conditions: SQL conditions, as `Table.to_arrow` takes them as a filter.
    """
    version = table.version()
    rows = counted_rows(table.to_arrow(version=version))
    for condition in conditions:
        parts = (condition, f"not ({condition})", f"({condition}) is null")
        combined: Counter[str] = Counter()
        for part in parts:
            combined += counted_rows(table.to_arrow(version=version, filter=part))
        assert combined == rows, f"{table.url}, version {version}: filtered by {condition}: {_difference(combined, rows)}"


def conditions_on(table: Table) -> list[str]:
    """Return conditions on a table's columns of plain types: whether each is NULL; for numbers and texts also a value from the middle."""
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
    """Return the readable versions of the log, oldest first: those from version 0, or from the oldest checkpoint, on."""
    versions = sorted(commit["version"] for commit in table.history())
    for position, version in enumerate(versions):
        try:
            table.snapshot(version)
        except NotFound:
            continue  # it has a commit, but there is neither version 0 nor an earlier checkpoint
        return versions[position:]
    return []


def counted_rows(rows: pa.Table) -> Counter[str]:
    """Return rows as a multiset of the texts of their values: this also counts unhashable values, and NaN equals itself."""
    return Counter(repr(tuple(row.values())) for row in rows.to_pylist())


def after_changes(before: Mapping[str, int], changes: pa.Table) -> Counter[str]:
    """Return the rows after applying a change data feed.

    Args:
        before: the rows before it, from `counted_rows`.
        changes: from `Table.changes`.

    Returns:
        The rows, without those whose count is zero. A count below zero means that a missing row was deleted.
    """
    rows: Counter[str] = Counter(before)
    for change in changes.to_pylist():
        kind = change.pop("_change_type")
        values = tuple(value for name, value in change.items() if name not in ("_commit_version", "_commit_timestamp"))
        rows[repr(values)] += SIGNS[kind]
    return Counter({row: count for row, count in rows.items() if count})


def _living(add: AddFile) -> int | None:
    deleted = add.deletion_vector.cardinality if add.deletion_vector else 0
    return None if add.num_records is None else add.num_records - deleted


def _has_feed_from(before: Snapshot, snapshot: Snapshot) -> bool:
    same = before.metadata.schema_string == snapshot.metadata.schema_string
    return same and before.partition_columns == snapshot.partition_columns and snapshot.config.properties.enable_change_data_feed


def _difference(actual: Counter[str], expected: Counter[str]) -> str:
    """Describe a few surplus rows and a few missing rows."""
    names = ("too many", "missing")
    sides = zip(names, ((actual - expected), (expected - actual)), strict=True)
    return ", ".join(f"{sum(rows.values())} rows {name}, such as {list(rows)[:3]}" for name, rows in sides if rows)


def _is_plain(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else text_literal(value)
