"""The difference between two versions: schema, properties, protocol, files and rows.

Only files that one of the two versions lacks are read, and only if rows are requested: rows of common files are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.html import html_part, html_table
from tahoe.base.progress import Progress, silent, tracked_rows
from tahoe.base.secrets import shown_value
from tahoe.base.wording import counted
from tahoe.log.replay import add_files
from tahoe.protocol.actions import AddFile
from tahoe.schema.types import StructType
from tahoe.snapshot.row_statistics import RowStatistics
from tahoe.snapshot.snapshot import Snapshot

_CHANGES = ("inserted", "updated", "deleted")


@dataclass(frozen=True, slots=True)
class Change:
    """A column, property or other named value that differs; None where a version lacks it."""

    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"+ {self.name} {self.after}"
        return f"− {self.name} {self.before}" if self.after is None else f"~ {self.name} {self.before} → {self.after}"


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Files that only one version has, and files whose deletion vector differs.

    Args:
        added_bytes, removed_bytes: total sizes of added and removed files.
        rows_before, rows_after: the live rows of each version; None if the log does not have them.
    """

    added: int
    removed: int
    with_other_vector: int
    added_bytes: int
    removed_bytes: int
    rows_before: int | None
    rows_after: int | None


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Rows that differ.

    Args:
        inserted, updated, deleted: numbers of rows; without a key, an updated row counts as deleted and inserted.
        sample: some of them, with the columns of the newer version and ``_change``.
    """

    inserted: int
    updated: int
    deleted: int
    sample: pa.Table


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """The result of `Table.diff`; `str` gives a readable summary.

    Args:
        start, end: the older and the newer version.
        rows: None if rows were not compared.
    """

    table: str
    start: int
    end: int
    columns: tuple[Change, ...]
    properties: tuple[Change, ...]
    definition: tuple[Change, ...]
    files: FileChanges
    rows: RowChanges | None = None

    def to_json_value(self) -> dict[str, Any]:
        """Return the difference without sample rows as a JSON value, for programs."""
        files = self.files
        changes = {
            name: [{"name": change.name, "before": change.before, "after": change.after} for change in getattr(self, name)]
            for name in ("columns", "properties", "definition")
        }
        return {
            "table": self.table,
            "from": self.start,
            "to": self.end,
            **changes,
            "files": {
                "added": files.added,
                "removed": files.removed,
                "withOtherDeletionVector": files.with_other_vector,
                "addedBytes": files.added_bytes,
                "removedBytes": files.removed_bytes,
            },
            "rowsBefore": files.rows_before,
            "rowsAfter": files.rows_after,
            "rows": None if self.rows is None else {name: getattr(self.rows, name) for name in _CHANGES},
        }

    def __str__(self) -> str:
        return "\n".join([f"Version {self.start} → {self.end} of {self.table}", *self._lines()])

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self._lines())
        title = f"<h2>Version {self.start} → {self.end} of {escape(self.table)}</h2>"
        if self.rows is None:
            return html_part(title, f"<ul>{lines}</ul>")
        sample = self.rows.sample
        return html_part(
            title,
            f"<ul>{lines}</ul>",
            html_table(sample.column_names, [tuple(map(str, row.values())) for row in sample.to_pylist()]),
        )

    def _lines(self) -> Iterator[str]:
        for title, changes in (("column", self.columns), ("property", self.properties), ("", self.definition)):
            yield from (f"{title} {change}".strip() for change in changes)
        files = self.files
        yield (
            f"files: {files.added:,} added ({files.added_bytes:,} bytes), {files.removed:,} removed ({files.removed_bytes:,} bytes), "
            f"{files.with_other_vector:,} with another deletion vector"
        )
        if self.rows is None:
            yield f"rows: {_count(files.rows_before)} → {_count(files.rows_after)}"
        else:
            yield "rows: " + ", ".join(f"{getattr(self.rows, name):,} {name}" for name in _CHANGES)


@dataclass(frozen=True, slots=True)
class RowComparison:
    """How rows are compared.

    Args:
        key: columns that identify a row, to recognize updated rows.
        limit: the maximum number of sample rows.
    """

    key: Sequence[str] = ()
    limit: int = 20


def diff_of(
    before: Snapshot, after: Snapshot, comparison: RowComparison | None = None, progress: Progress = silent
) -> VersionDiff:
    """Compare two versions of a table.

    Args:
        comparison: of the rows of files that only one version has, which must fit in memory; None to read no rows.
        progress: called with the number of rows read, of each version.

    Raises `InvalidRequest`: a key column that a version lacks, or duplicate keys (`TAHOE_DIFF_KEY`).
    """
    files_before, files_after = (_by_identity(snapshot) for snapshot in (before, after))
    only_before = [files_before[name] for name in files_before.keys() - files_after.keys()]
    only_after = [files_after[name] for name in files_after.keys() - files_before.keys()]
    return VersionDiff(
        after.store.url,
        before.version,
        after.version,
        tuple(_changes(_columns(before.schema), _columns(after.schema))),
        tuple(_properties(before.metadata.configuration, after.metadata.configuration)),
        tuple(_changes(_definition(before), _definition(after))),
        _file_changes(before, after, only_before, only_after),
        None if comparison is None else _row_changes((before, only_before), (after, only_after), comparison, progress),
    )


def _by_identity(snapshot: Snapshot) -> dict[tuple[str, str | None], AddFile]:
    """Return the files by path and deletion vector, which together identify the live rows of a file."""
    return {add.key: add for add in add_files(snapshot.files())}


def _columns(schema: StructType) -> dict[str, str]:
    return {column.name: f"{column.data_type}{'' if column.nullable else ' not null'}" for column in schema}


def _definition(snapshot: Snapshot) -> dict[str, str]:
    protocol, metadata = snapshot.protocol, snapshot.metadata
    features = sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})
    values = {
        "partitioned by": ", ".join(snapshot.partition_columns),
        "protocol": f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}",
        "features": ", ".join(features),
        "name": metadata.name or "",
        "description": metadata.description or "",
    }
    return {name: value for name, value in values.items() if value}


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in dict.fromkeys(chain(before, after)):
        if before.get(name) != after.get(name):
            yield Change(name, before.get(name), after.get(name))


def _properties(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for change in _changes(before, after):
        shown = (None if value is None else shown_value(change.name, value) for value in (change.before, change.after))
        yield Change(change.name, *shown)


def _file_changes(before: Snapshot, after: Snapshot, removed: Sequence[AddFile], added: Sequence[AddFile]) -> FileChanges:
    rewritten = {add.path for add in removed} & {add.path for add in added}
    new, old = ([add.size for add in adds if add.path not in rewritten] for adds in (added, removed))
    return FileChanges(len(new), len(old), len(rewritten), sum(new), sum(old), _live_rows(before), _live_rows(after))


def _live_rows(snapshot: Snapshot) -> int | None:
    return RowStatistics(snapshot.files(), snapshot.partition_columns).count()


# -- rows --------------------------------------------------------------------------------------------------------------------


def _row_changes(
    before: tuple[Snapshot, Sequence[AddFile]],
    after: tuple[Snapshot, Sequence[AddFile]],
    comparison: RowComparison,
    progress: Progress,
) -> RowChanges:
    key, limit = comparison.key, comparison.limit
    names = [column.name for column in after[0].schema if before[0].schema.find(column.name) is not None]
    _check_key(key, names, after[0])
    old, new = (_read(snapshot, adds, names, progress) for snapshot, adds in (before, after))
    deleted, inserted = _unequal(_comparable(old), _comparable(new))
    if not key:
        sample = _sample([("deleted", old.take(deleted)), ("inserted", new.take(inserted))], new.schema, limit)
        return RowChanges(len(inserted), 0, len(deleted), sample)
    return _by_key(old.take(deleted), new.take(inserted), key, after[0], limit)


def _read(snapshot: Snapshot, adds: Sequence[AddFile], columns: Sequence[str], progress: Progress) -> pa.Table:
    scan = snapshot.scan(columns=tuple(columns))
    batches = tracked_rows(scan.batches_of(adds), progress, f"rows read of version {snapshot.version}")
    return pa.Table.from_batches(batches, scan.arrow_schema)


def _check_key(key: Sequence[str], names: Sequence[str], snapshot: Snapshot) -> None:
    for name in key:
        if name not in names:
            raise InvalidRequest(
                f"Key column '{name}' is not a column of both versions of table {snapshot.store.url}; these are: {', '.join(names)}.",
                code="TAHOE_DIFF_KEY",
                table=snapshot.store.url,
                column=name,
            )


def _comparable(rows: pa.Table) -> pa.Table:
    """Replace columns of types that Arrow cannot group by (nested and floating ones) by texts that are equal for equal values."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type) or pa.types.is_floating(field.type):
            texts = pa.array([None if value is None else repr(value) for value in rows.column(place).to_pylist()], pa.string())
            rows = rows.set_column(place, field.name, texts)
    return rows


def _unequal(old: pa.Table, new: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return the positions of rows of each table that have no equal row in the other; equal rows are paired one by one."""
    positions = [pa.array(range(len(rows)), pa.int64()) for rows in (old, new)]
    sides = [pa.array([sign] * len(rows), pa.int8()) for sign, rows in ((-1, old), (1, new))]
    names = [f"c{place}" for place in range(old.num_columns)]
    both = pa.concat_tables(
        [
            rows.rename_columns(names).append_column("side", side).append_column("position", position)
            for rows, side, position in zip((old, new), sides, positions, strict=True)
        ],
        promote_options="permissive",
    )
    groups = both.group_by(names).aggregate([("side", "list"), ("position", "list")])
    deleted, inserted = list[int](), list[int]()
    for signs, places in zip(groups["side_list"].to_pylist(), groups["position_list"].to_pylist(), strict=True):
        gone = [place for sign, place in zip(signs, places, strict=True) if sign < 0]
        come = [place for sign, place in zip(signs, places, strict=True) if sign > 0]
        paired = min(len(gone), len(come))
        deleted += gone[paired:]
        inserted += come[paired:]
    return pa.array(sorted(deleted), pa.int64()), pa.array(sorted(inserted), pa.int64())


def _by_key(old: pa.Table, new: pa.Table, key: Sequence[str], after: Snapshot, limit: int) -> RowChanges:
    keys_old, keys_new = (_keys(rows, key, after) for rows in (old, new))
    parts = [
        ("deleted", _taken(old, [place for value, place in keys_old.items() if value not in keys_new])),
        ("updated", _taken(new, [place for value, place in keys_new.items() if value in keys_old])),
        ("inserted", _taken(new, [place for value, place in keys_new.items() if value not in keys_old])),
    ]
    counts = {name: len(rows) for name, rows in parts}
    return RowChanges(counts["inserted"], counts["updated"], counts["deleted"], _sample(parts, new.schema, limit))


def _taken(rows: pa.Table, places: Sequence[int]) -> pa.Table:
    return rows.take(pa.array(places, pa.int64()))


def _keys(rows: pa.Table, key: Sequence[str], snapshot: Snapshot) -> dict[tuple[str, ...], int]:
    values = list(zip(*(map(repr, rows[name].to_pylist()) for name in key), strict=True))
    positions = {value: place for place, value in enumerate(values)}
    if len(positions) < len(values):
        raise InvalidRequest(
            f"Columns {', '.join(key)} do not identify the rows of table {snapshot.store.url}: {len(values):,} changed rows have "
            f"{len(positions):,} keys. Give more columns, or compare without a key.",
            code="TAHOE_DIFF_KEY",
            table=snapshot.store.url,
        )
    return positions


def _sample(parts: Sequence[tuple[str, pa.Table]], schema: pa.Schema, limit: int) -> pa.Table:
    with_name = schema.append(pa.field("_change", pa.string()))
    some = [
        rows.slice(0, limit)
        .cast(schema)
        .append_column(with_name.field("_change"), pa.array([name] * min(limit, len(rows)), pa.string()))
        for name, rows in parts
    ]
    return pa.concat_tables([pa.table({field.name: pa.array([], field.type) for field in with_name}, with_name), *some]).slice(
        0, limit
    )


def _count(rows: int | None) -> str:
    return "unknown" if rows is None else counted(rows, "row")
