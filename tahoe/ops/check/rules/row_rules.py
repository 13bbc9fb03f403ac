"""Rules of the rows of live files and of change-data files: the level `DEEP`.

    file ──size, footer──► rows, columns ──pages, their checksums verified──► batches of live rows ──► least, greatest, nulls
                              └──compare──► numRecords, vector                                             └──compare──► statistics

Files are read in parallel, a batch at a time, so memory is bounded by a few row groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import NotFound, TahoeError
from tahoe.base.lazy import pc, pq
from tahoe.base.progress import Progress
from tahoe.ops.check.rules.column_values import ColumnValues, contradictions, stated_leaves
from tahoe.ops.check.rules.data_rules import CHANGE_RULES, NamedFile, arrow_errors_as_corruption, parquet_file
from tahoe.ops.check.rules.live_file_rules import LiveFiles, side_by_side
from tahoe.ops.check.subjects.rule import Breaches, Level, RuleList
from tahoe.ops.check.subjects.table_settings import Settings
from tahoe.ops.check.subjects.violation import Reported, Violation
from tahoe.protocol.actions import AddCDCFile
from tahoe.protocol.nan_bounds import are_nan_counted
from tahoe.protocol.partition import deserialize
from tahoe.protocol.row_tracking import high_water_mark, materialized_columns
from tahoe.protocol.statistics.bounds import Leaf
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.schema.cast import Find, find_by_id, find_physical
from tahoe.schema.types import leaves
from tahoe.snapshot.arrow_reader import NO_EXTRA_COLUMNS, ExtraColumns, FileReadOptions, ReadTask
from tahoe.snapshot.data_reader import DataFiles
from tahoe.store.location import decode_path

RULES: RuleList[DataFile] = RuleList()

_BATCH_ROWS = 65_536
_ROW_ID = "\0row id"


def check_data(files: LiveFiles, levels: Collection[Level], progress: Progress) -> Iterator[Violation]:
    """Read each live file completely, verify its page checksums if it has any, and yield the violations of the levels' rules."""
    reader = _Reader(files)
    total = len(files.paths)
    # Files whose vectors share a vector file are checked in sequence, so that it is read once.
    order = sorted(range(total), key=lambda index: str(files.vectors[index] and files.vectors[index].path_or_inline_dv[:64]))  # type: ignore[union-attr]
    progress("data files read", 0, total)
    for done, violations in enumerate(side_by_side(lambda index: reader.violations(index, levels), order), start=1):
        progress("data files read", done, total)
        yield from violations


def check_change_files(
    files: LiveFiles, change_files: Sequence[tuple[int, AddCDCFile]], progress: Progress
) -> Iterator[Violation]:
    """Yield the violations in the change-data files that still exist: VACUUM removes them before their commits expire."""

    def check(item: tuple[int, AddCDCFile]) -> list[Violation]:
        version, action = item
        violations: list[Violation] = []
        with Reported(violations.append, "change-data", f"Change-data file {action.path}", version, action.path):
            name = decode_path(action.path, files.store.url)
            file = NamedFile(files.store, action.to_json_value(), Settings({}, {}), None)
            violations += CHANGE_RULES.violations(Level.DEEP, file, version, name)
        return violations

    for done, violations in enumerate(side_by_side(check, change_files), start=1):
        progress("change-data files read", done, len(change_files))
        yield from violations


@dataclass
class DataFile:
    """A live file, read completely.

    Args:
        num_rows: according to the footer, deleted rows included.
        missing: the columns with statistics that the file does not have.
        mark: the table's high-water mark; None if rows are not tracked.
        counts_nan: see `contradictions`.
        partitions: the name, the value in the log and the distinct values of each partition column in the file.
        columns: the values of the live rows; None if they cannot be read.
    """

    task: ReadTask
    statistics: FileStatistics | None
    num_rows: int
    missing: list[str]
    mark: int | None
    counts_nan: bool
    partitions: list[tuple[str, Any, list[Any]]] = field(default_factory=list)
    columns: list[ColumnValues] | None = None
    highest_row_id: int = -1


@RULES.rule("Per-file Statistics", deep="statistics")
def statistics_hold_for_the_rows(file: DataFile) -> Breaches:
    """Row count, bounds and null counts are true of the live rows."""
    name, statistics = file.task.name, file.statistics
    if statistics is None:
        return
    if statistics.num_records != file.num_rows:
        yield f"numRecords of {name} is {statistics.num_records}, but the file has {file.num_rows} rows"
    for column in file.missing:
        yield f"the statistics of {name} give values of column {column}, which the file does not have"
    has_vector = file.task.deletion_vector is not None
    for wrong in contradictions(statistics, file.columns or [], has_vector=has_vector, counts_nan=file.counts_nan):
        yield f"the statistics of {name} are false: {wrong}"


@RULES.rule("Consistency Between Table Metadata and Data Files", deep="partition", strict=False)
def partition_columns_have_the_logs_value(file: DataFile) -> Breaches:
    """Readers use the log's value, some the file's."""
    for column, expected, distinct in file.partitions:
        if any(not _same(value, expected) for value in distinct):
            yield f"file {file.task.name} is in partition {column} = {expected!r}, but contains {distinct[:3]!r}"


@RULES.rule("Deletion Vectors", deep="vector", strict=False)
def vectors_fit_the_rows(file: DataFile) -> Breaches:
    """Checked here if the log has no statistics."""
    vector = file.task.deletion_vector
    if vector is not None and file.statistics is None and vector.cardinality > file.num_rows:
        yield f"the deletion vector of {file.task.name} marks {vector.cardinality} of {file.num_rows} rows"


@RULES.rule("Row IDs", deep="row-ids", strict=False)
def row_ids_are_below_the_mark(file: DataFile) -> Breaches:
    """Materialized row ids are at most the table's high-water mark."""
    if file.mark is not None and file.highest_row_id > file.mark:
        yield f"file {file.task.name} contains row id {file.highest_row_id}, beyond the table's high-water mark {file.mark}"


class _Reader:
    """Reads the live files; the state that all of them share."""

    def __init__(self, files: LiveFiles) -> None:
        config = files.snapshot.config
        partitioned = {name.lower() for name in config.partition_columns}
        self.files = files
        self.config = config
        self.data_leaves: list[Leaf] = [leaf for leaf in leaves(config.schema) if leaf[0].name.lower() not in partitioned]
        self.find: Find = find_by_id if config.column_mapping_mode == "id" else find_physical
        self.stats: list[Any] = files.column("stats")
        self.nan_counted: list[bool | None] = are_nan_counted(files.table).to_pylist()
        self.sizes: list[int] = files.column("size")
        self.partition_values: list[Any] = files.table["partitionValues"].to_pylist(maps_as_pydicts="lossy")
        self.data_files = DataFiles(files.store, config)
        columns = materialized_columns(config)
        self.extra = NO_EXTRA_COLUMNS
        if columns is not None:
            self.extra = ExtraColumns(row_id_column=_ROW_ID, materialized_row_id_column=columns.row_id)
        self.mark = high_water_mark(files.snapshot.state.domains) if columns is not None else None

    def violations(self, index: int, levels: Collection[Level]) -> list[Violation]:
        """Return the violations in one live file; none if the rules of live files report its path or its size."""
        name = self.files.names[index]
        violations: list[Violation] = []
        if not isinstance(name, str):
            return violations
        file: DataFile | None = None
        with Reported(violations.append, "data", f"Data file {name}", file=name):
            file = self._open(index, name)
            if file is not None:
                self._read(file)
        if file is not None:
            for level in levels:
                violations += RULES.violations(level, file, None, name)
        return violations

    def _open(self, index: int, name: str) -> DataFile | None:
        """Read the footer, and the partition columns in the file; None if the file is missing or of another size."""
        try:
            source = self.files.store.open_input(name)
        except NotFound:
            return None
        with source:
            if source.size() != self.sizes[index]:
                return None
            with arrow_errors_as_corruption(name):
                footer = pq.ParquetFile(source, arrow_extensions_enabled=False)
                metadata, schema = footer.metadata, footer.schema_arrow
            statistics = self._statistics(index)
            stated = [] if statistics is None else stated_leaves(statistics, self.data_leaves)
            missing = [".".join(part.name for part in leaf) for leaf in stated if not _has(schema, leaf, self.find)]
            counts_nan = bool(self.nan_counted[index])
            file = DataFile(self._task(index, name), statistics, metadata.num_rows, missing, self.mark, counts_nan)
            self._partition_columns(file, source, schema)
        return file

    def _partition_columns(self, file: DataFile, source: pa.NativeFile, schema: pa.Schema) -> None:
        values = file.task.partition_values
        for column in self.config.partition_schema:
            position = self.find(pa.struct(schema), column)
            if position is None or column.physical_name not in values:
                continue
            expected = deserialize(values[column.physical_name], column.data_type)
            with arrow_errors_as_corruption(file.task.name):
                table = parquet_file(source).read([schema.field(position).name], use_threads=False)
                distinct = pc.unique(table.column(0)).cast(_plain(schema.field(position).type)).to_pylist()
            file.partitions.append((column.name, expected, distinct))

    def _read(self, file: DataFile) -> None:
        columns = [ColumnValues(leaf) for leaf in self.data_leaves]
        batches = self.data_files.read(file.task, extra=self.extra, options=FileReadOptions(_BATCH_ROWS, verify_pages=True))
        for batch in batches:
            for column in columns:
                column.add(batch)
            if self.extra.row_id_column is not None and batch.num_rows:
                file.highest_row_id = max(file.highest_row_id, pc.max(batch.column(batch.num_columns - 1)).as_py() or -1)
        file.columns = columns

    def _task(self, index: int, name: str) -> ReadTask:
        bases = self.files.table["baseRowId"]
        return ReadTask(
            name=name,
            size=self.sizes[index],
            partition_values=self.partition_values[index] or {},
            deletion_vector=self.files.vectors[index],
            base_row_id=bases[index].as_py(),
        )

    def _statistics(self, index: int) -> FileStatistics | None:
        text = self.stats[index]
        if text is None:
            return None
        try:
            return FileStatistics.from_json(text)
        except TahoeError:
            return None  # reported by the rule of statistics


def _has(schema: pa.Schema, leaf: Leaf, find: Find) -> bool:
    kind: pa.DataType = pa.struct(schema)
    for column in leaf:
        position = find(kind, column) if pa.types.is_struct(kind) else None
        if position is None:
            return False
        kind = kind.field(position).type
    return True


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type with Python values: timestamps without their zone, in microseconds."""
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def _same(stored: Any, expected: Any) -> bool:
    if stored == "" and expected is None:
        return True  # an empty text is null in partition values
    if isinstance(stored, float) and isinstance(expected, float) and stored != stored:
        return expected != expected
    if hasattr(stored, "tzinfo") and hasattr(expected, "tzinfo"):
        return bool(stored.replace(tzinfo=None) == expected.replace(tzinfo=None))
    return bool(stored == expected)
