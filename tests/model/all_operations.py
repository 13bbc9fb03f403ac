"""Random histories of the operations of `tahoe.Table`, beside a list of rows that changes likewise.

After each operation a new handle reads the rows of the list, the table fulfils the specification, and PyIceberg reads the same rows if
UniForm is enabled. An operation that is refused changes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tahoe import Table
from tahoe.exceptions import InvalidRequest, NotFound, Unsupported
from tahoe.protocol.iceberg_compat import format_version
from tests.interop.engines import canonical
from tests.interop.iceberg import read_pyiceberg

Row = Mapping[str, Any]

COLUMNS: Mapping[str, pa.DataType] = {
    "id": pa.int64(),
    "part": pa.string(),
    "number": pa.int32(),
    "name": pa.string(),
    "amount": pa.float64(),
    "inner": pa.struct([("a", pa.int32()), ("list", pa.list_(pa.string()))]),
}
KEPT_NAMES = ("id", "part", "name")
"""Columns that operations refer to by name."""

VALUES: Mapping[pa.DataType, Sequence[Any]] = {
    pa.int32(): (None, -1, 0, 7, 2**31 - 1),
    pa.int64(): (None, -(2**40), 5),
    pa.string(): (None, "", "x", "é", "a/b%20"),
    pa.float64(): (None, -0.5, 0.0, 2.5),
    COLUMNS["inner"]: (None, {"a": None, "list": None}, {"a": 1, "list": ["u", None]}, {"a": 2, "list": []}),
}
PARTS = (None, "A", "B", "c d", "e=%")
CREATION: Mapping[str, Sequence[str | None]] = {
    "delta.columnMapping.mode": (None, "name", "id"),
    "delta.enableDeletionVectors": (None, "true"),
    "delta.enableRowTracking": (None, None, "true"),
    "delta.enableChangeDataFeed": (None, None, "true"),
    "delta.enableInCommitTimestamps": (None, None, "true"),
    "delta.checkpointPolicy": (None, None, "v2"),
    "delta.enableTypeWidening": (None, None, "true"),
    "delta.checkpointInterval": ("3", "10"),
}
LATER: Mapping[str, Sequence[str]] = {
    "delta.enableDeletionVectors": ("true", "false"),
    "delta.enableRowTracking": ("true",),
    "delta.enableChangeDataFeed": ("true", "false"),
    "delta.columnMapping.mode": ("name",),
    "delta.enableTypeWidening": ("true",),
    "delta.enableInCommitTimestamps": ("true", "false"),
    "delta.checkpointPolicy": ("v2", "classic"),
    "delta.randomizeFilePrefixes": ("true",),
    "delta.checkpoint.writeStatsAsStruct": ("true", "false"),
    "delta.checkpoint.writeStatsAsJson": ("true", "false"),
    "delta.dataSkippingNumIndexedCols": ("0", "1", "32"),
    "delta.autoOptimize.autoCompact": ("true", "false"),
    "delta.universalFormat.config.iceberg.deletes": ("position",),
}
FEATURES = (
    "deletionVectors",
    "rowTracking",
    "columnMapping",
    "typeWidening",
    "v2Checkpoint",
    "inCommitTimestamp",
    "changeDataFeed",
)
IN_STEPS = ("drop_feature", "upgrade")
"""Operations of several commits: what is refused may have done some of them, and the rows stay."""


@dataclass(frozen=True)
class Expected:
    """The rows of a version, and its columns."""

    rows: tuple[Row, ...]
    columns: Mapping[str, pa.DataType]

    def table(self) -> pa.Table:
        """Return the rows as Arrow data."""
        return rows_of(self.rows, self.columns)


def rows_of(rows: Sequence[Row], columns: Mapping[str, pa.DataType]) -> pa.Table:
    """Return rows as Arrow data."""
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in columns.items()})


class History:
    """One table, the rows that it must have, and the operations that it went through.

    Args:
        folder: of the table and of its clones.
        seed: of all choices.
    """

    refusals: tuple[type[Exception], ...] = (InvalidRequest, NotFound, Unsupported)

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.chance = folder, random.Random(seed)
        self.steps: list[str] = []
        self.last_id = 0
        chosen = {key: self.chance.choice(values) for key, values in CREATION.items()}
        properties = {key: value for key, value in chosen.items() if value is not None}
        partition_by = ["part"] if self.chance.random() < 0.5 else []
        cluster_by = ["id"] if not partition_by and self.chance.random() < 0.3 else None
        self.table = Table.create(
            folder / "t",
            pa.schema(list(COLUMNS.items())),
            partition_by=partition_by,
            properties=properties,
            cluster_by=cluster_by,
        )
        self.expected = Expected((), dict(COLUMNS))
        self.earlier = {0: self.expected}

    def step(self) -> None:
        """Run one operation and compare."""
        name = self.chance.choice(NAMES)
        version, before = self.table.version(), self.expected
        self.steps.append(name)
        try:
            self.operations()[name](self)
        except self.refusals as error:
            self.steps[-1] += f", refused: {error}"[:120]
            self.expected = before
            assert name in IN_STEPS or Table(self.table.url).version() == version, "what is refused changes nothing"
        self.compare()

    def run(self, steps: int) -> None:
        """Run so many operations; an error names those before it."""
        try:
            for _ in range(steps):
                self.step()
        except Exception as error:
            error.add_note("; ".join(self.steps))
            raise

    def operations(self) -> Mapping[str, Callable[[Any], object]]:
        """Return the operations by name."""
        return OPERATIONS

    def compare(self) -> None:
        """Compare the table with the list of rows."""
        opened = Table(self.table.url)
        actual = opened.to_arrow()
        assert actual.schema.names == list(self.expected.columns)
        expected = canonical(_as_stored(self.expected.table(), opened.snapshot().partition_columns))
        assert canonical(actual) == expected
        # Position deletes for vectors go beyond IcebergCompatV2, which allows none.
        assert [each for each in opened.check(strict=True) if each.code != "iceberg-allows-no-vectors"] == []
        if _is_read_by_pyiceberg(opened):
            assert canonical(read_pyiceberg(opened.uniform.sync().metadata_location)) == expected
        self.earlier[opened.version()] = self.expected

    def new_rows(self) -> list[Row]:
        """Return a few rows with new ids."""
        rows = []
        for _ in range(self.chance.randrange(1, 6)):
            self.last_id += 1
            row = {name: self.chance.choice(VALUES[kind]) for name, kind in self.expected.columns.items()}
            rows.append({**row, "id": self.last_id, "part": self.chance.choice(PARTS)})
        return rows

    def some_id(self) -> int:
        """Return the id of a row that the table had, or has."""
        return self.chance.randrange(1, self.last_id + 2)

    def becomes(self, rows: Sequence[Row], columns: Mapping[str, pa.DataType] | None = None) -> None:
        """Expect these rows from now on."""
        self.expected = Expected(tuple(rows), self.expected.columns if columns is None else columns)

    def loses(self, *, number: int, above: bool) -> None:
        """Expect the deletion of the row with an id, or of all rows above it."""
        self.becomes([row for row in self.expected.rows if not (row["id"] > number if above else row["id"] == number)])

    def is_updated(self, numbers: set[int]) -> None:
        """Expect another name in the rows with these ids."""
        self.becomes([{**row, "name": "updated"} if row["id"] in numbers else row for row in self.expected.rows])

    def source(self) -> list[Row]:
        """Return the source of a MERGE: some ids of the table, and new ones."""
        source, matched = self.new_rows(), [row["id"] for row in self.expected.rows if self.chance.random() < 0.2]
        return source + [{**row, "id": number} for row, number in zip(self.new_rows(), matched, strict=False)]

    def is_merged(self, source: Sequence[Row]) -> None:
        """Expect the rows of a source in place of those with their ids, and its other rows."""
        by_id = {row["id"]: row for row in source}
        stay = [by_id.pop(row["id"], row) for row in self.expected.rows]
        self.becomes([*stay, *by_id.values()])

    def is_renamed(self, name: str, new: str) -> None:
        """Expect another name of a column."""
        columns = {new if each == name else each: kind for each, kind in self.expected.columns.items()}
        self.becomes([{new if each == name else each: row[each] for each in row} for row in self.expected.rows], columns)

    def is_dropped(self, name: str) -> None:
        """Expect no such column."""
        columns = {each: kind for each, kind in self.expected.columns.items() if each != name}
        self.becomes([{each: row[each] for each in columns} for row in self.expected.rows], columns)

    def free_column(self, kind: pa.DataType | None = None) -> str | None:
        """Return a column that operations do not refer to; None if there is none of the type."""
        names = [name for name, own in self.expected.columns.items() if name not in KEPT_NAMES and kind in (None, own)]
        return self.chance.choice(names) if names else None


def _is_read_by_pyiceberg(table: Table) -> bool:
    """Whether UniForm is enabled, and PyIceberg can read the table: 0.12 reads no vectors of format version 3."""
    properties, vectors = table.snapshot().config.properties, table.files()["deletionVector"]
    is_shown = "iceberg" in properties.universal_format_enabled_formats
    return is_shown and (format_version(properties) < 3 or vectors.null_count == len(vectors))


def _as_stored(rows: pa.Table, partition_columns: Sequence[str]) -> pa.Table:
    """An empty text in a partition column is NULL."""
    for name in partition_columns:
        values = [value or None for value in rows[name].to_pylist()]
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(values, pa.string()))
    return rows


# -- rows --------------------------------------------------------------------------------------------------------------------


def append(history: History) -> None:
    rows = history.new_rows()
    history.table.append(rows_of(rows, history.expected.columns), max_rows_per_file=history.chance.choice([2, 1000]))
    history.becomes([*history.expected.rows, *rows])


def overwrite(history: History) -> None:
    rows = history.new_rows()
    history.table.overwrite(rows_of(rows, history.expected.columns))
    history.becomes(rows)


def delete(history: History) -> None:
    number, above = history.some_id(), history.chance.random() < 0.2
    history.table.delete(f"id {'>' if above else '='} {number}")
    history.loses(number=number, above=above)


def delete_all(history: History) -> None:
    if history.chance.random() < 0.2:
        history.table.delete()
        history.becomes([])


def update(history: History) -> None:
    numbers = {history.some_id(), history.some_id()}
    history.table.update({"name": "'updated'"}, f"id IN ({', '.join(map(str, numbers))})")
    history.is_updated(numbers)


def merge(history: History) -> None:
    source = history.source()
    builder = history.table.merge(rows_of(source, history.expected.columns), "target.id = source.id")
    builder.when_matched_update_all().when_not_matched_insert_all().execute()
    history.is_merged(source)


# -- columns -----------------------------------------------------------------------------------------------------------------


def add_column(history: History) -> None:
    name, kind = f"added{len(history.steps)}", history.chance.choice(list(VALUES))
    history.table.add_columns(pa.schema([(name, kind)]))
    columns = {**history.expected.columns, name: kind}
    history.becomes([{**row, name: None} for row in history.expected.rows], columns)


def rename_column(history: History) -> None:
    name, new = history.free_column(), f"renamed{len(history.steps)}"
    if name is not None:
        history.table.rename_column(name, new)
        history.is_renamed(name, new)


def drop_column(history: History) -> None:
    name = history.free_column()
    if name is not None:
        history.table.drop_columns([name])
        history.is_dropped(name)


def widen_column(history: History) -> None:
    name = history.free_column(pa.int32())
    if name is not None:
        history.table.change_column(name, data_type="bigint")
        history.becomes(history.expected.rows, {**history.expected.columns, name: pa.int64()})


# -- properties, layout, upkeep ----------------------------------------------------------------------------------------------


def set_property(history: History) -> None:
    key = history.chance.choice(list(LATER))
    history.table.set_properties({key: history.chance.choice(LATER[key])})


def upgrade(history: History) -> None:
    history.table.uniform.upgrade(history.chance.choice([2, 2, 3]))


def add_constraint(history: History) -> None:
    history.table.add_constraint(f"positive{len(history.steps)}", "id > 0")


def optimize(history: History) -> None:
    history.table.optimize(zorder_by=history.chance.choice([[], ["id"]]))


def cluster_by(history: History) -> None:
    history.table.cluster_by(history.chance.choice([[], ["id"], ["name", "id"]]))


def restore(history: History) -> None:
    version = history.chance.choice(list(history.earlier))
    history.table.restore(version=version)
    history.expected = history.earlier[version]


def vacuum(history: History) -> None:
    if history.chance.random() < 0.3:
        history.table.vacuum(retention_hours=0, retention_check=False)
        history.earlier = {}


def clone(history: History) -> None:
    if history.chance.random() < 0.3:
        target = history.folder / f"clone{len(history.steps)}"
        history.table.clone(target, shallow=history.chance.random() < 0.3)
        history.table, history.earlier = Table(target), {}


OPERATIONS: Mapping[str, Callable[[History], object]] = {
    "append": append,
    "overwrite": lambda history: overwrite(history) if history.chance.random() < 0.3 else append(history),
    "delete": delete,
    "delete_all": delete_all,
    "update": update,
    "merge": merge,
    "add_column": add_column,
    "rename_column": rename_column,
    "drop_column": drop_column,
    "widen_column": widen_column,
    "set_property": set_property,
    "upgrade": upgrade,
    "drop_feature": lambda history: history.table.drop_feature(history.chance.choice(FEATURES)),
    "add_constraint": add_constraint,
    "optimize": optimize,
    "cluster_by": cluster_by,
    "purge": lambda history: history.table.purge(),
    "compute_statistics": lambda history: history.table.compute_statistics(),
    "checkpoint": lambda history: history.table.checkpoint(),
    "repair_log": lambda history: history.table.repair_log(),
    "fsck": lambda history: history.table.fsck(),
    "restore": restore,
    "vacuum": vacuum,
    "clone": clone,
}
NAMES = (*OPERATIONS, *["append"] * 4, *["delete"] * 3, "update", "merge", "upgrade", "set_property")
