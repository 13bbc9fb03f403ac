"""The deep part of a check: read every row of every data file, and compare it with the log.

    file ──size, footer──► rows, columns ──pages, their checksums verified──► batches of live rows ──► least, greatest, nulls
                              └──compare──► numRecords, vector                                             └──compare──► statistics

Files are read in parallel, a batch at a time, so memory is bounded by a few row groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, NotFound, TahoeError
from tahoe.base.lazy import pc, pq
from tahoe.base.progress import Progress
from tahoe.ops.check.live_file_check import LiveFiles, side_by_side
from tahoe.ops.check.statistics_check import ColumnValues, contradictions, stated_leaves
from tahoe.ops.check.subjects.violation import Reported, Violation
from tahoe.protocol.actions import AddCDCFile
from tahoe.protocol.nan_bounds import are_nan_counted
from tahoe.protocol.partition import deserialize
from tahoe.protocol.row_tracking import high_water_mark, materialized_columns
from tahoe.protocol.statistics.bounds import Leaf
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.schema.cast import Find, find_by_id, find_physical
from tahoe.schema.types import StructType, leaves
from tahoe.snapshot.arrow_reader import ReadTask, RowTracking
from tahoe.snapshot.data_reader import DataFiles
from tahoe.store.location import decode_path

__all__ = ["check_change_files", "check_data"]

_BATCH_ROWS = 65_536
_ROW_ID = "\0row id"
_CHANGE_TYPES = ("insert", "delete", "update_preimage", "update_postimage")


def check_data(files: LiveFiles, progress: Progress) -> Iterator[Violation]:
    """Yield the violations in the data of the live files.

    Each file is read completely, and its page checksums are verified if it has them. Compared are: its size; its row count with
    ``numRecords``; its columns with those that have statistics; least and greatest value and nulls of the live rows with the
    statistics; partition columns in the file with the partition values; its deletion vector with its rows; materialized row ids with
    the table's high-water mark.
    """
    check = _DataCheck(files)
    total = len(files.paths)
    # Files whose vectors share a vector file are checked in sequence, so that it is read once.
    order = sorted(range(total), key=lambda index: str(files.vectors[index] and files.vectors[index].path_or_inline_dv[:64]))  # type: ignore[union-attr]
    progress("data files read", 0, total)
    for done, violations in enumerate(side_by_side(check.file, order), start=1):
        progress("data files read", done, total)
        yield from violations


def check_change_files(
    files: LiveFiles, change_files: Sequence[tuple[int, AddCDCFile]], progress: Progress
) -> Iterator[Violation]:
    """Yield the violations in the change-data files that still exist: VACUUM removes them before their commits expire."""
    check = _DataCheck(files)
    for done, violations in enumerate(side_by_side(lambda item: check.change_file(*item), change_files), start=1):
        progress("change-data files read", done, len(change_files))
        yield from violations


@dataclass
class _DataCheck:
    """The state that the checks of all files share."""

    files: LiveFiles
    schema: StructType = field(init=False)
    data_leaves: list[Leaf] = field(init=False)

    def __post_init__(self) -> None:
        config = self.files.snapshot.config
        self.config = config
        self.schema = config.schema
        partitioned = {name.lower() for name in config.partition_columns}
        self.data_leaves = [leaf for leaf in leaves(self.schema) if leaf[0].name.lower() not in partitioned]
        self.find: Find = find_by_id if config.column_mapping_mode == "id" else find_physical
        self.stats: list[Any] = self.files.column("stats")
        self.nan_counted: list[bool | None] = are_nan_counted(self.files.table).to_pylist()
        self.sizes: list[int] = self.files.column("size")
        self.partition_values: list[Any] = self.files.table["partitionValues"].to_pylist(maps_as_pydicts="lossy")
        self.data_files = DataFiles(self.files.store, config)
        self.tracking = self._tracking()
        self.mark = high_water_mark(self.files.snapshot.state.domains) if self.tracking else None

    def file(self, index: int) -> list[Violation]:
        """Return the violations in one live file."""
        name = self.files.names[index]
        if not isinstance(name, str):
            return []  # reported by the check of paths
        violations: list[Violation] = []
        with Reported(violations.append, "data", f"Data file {name}", file=name):
            violations += self._file(index, name)
        return violations

    def _file(self, index: int, name: str) -> Iterator[Violation]:
        store = self.files.store
        try:
            source = store.open_input(name)
        except NotFound:
            return  # reported by the check of storage
        with source:
            if source.size() != self.sizes[index]:
                return  # reported there too
            with _arrow_errors_as_corruption(name):
                footer = pq.ParquetFile(source, arrow_extensions_enabled=False)
                metadata, file_schema = footer.metadata, footer.schema_arrow
            statistics = self._statistics(index)
            if statistics is not None:
                if statistics.num_records != metadata.num_rows:
                    text = f"numRecords of {name} is {statistics.num_records}, but the file has {metadata.num_rows} rows."
                    yield Violation("statistics", text, file=name)
                yield from self._missing_columns(statistics, file_schema, name)
            yield from self._partition_columns(index, source, file_schema, name)
        task = self._task(index, name)
        if task.deletion_vector is not None and statistics is None and task.deletion_vector.cardinality > metadata.num_rows:
            text = f"the deletion vector of {name} marks {task.deletion_vector.cardinality} of {metadata.num_rows} rows."
            yield Violation("vector", text, file=name)
        columns = [ColumnValues(leaf) for leaf in self.data_leaves]
        highest = -1
        for batch in self._batches(task):
            for column in columns:
                column.add(batch)
            if self.tracking is not None and batch.num_rows:
                highest = max(highest, pc.max(batch.column(batch.num_columns - 1)).as_py() or -1)
        if self.mark is not None and highest > self.mark:
            yield Violation(
                "row-ids", f"file {name} holds row id {highest}, beyond the table's high-water mark {self.mark}.", file=name
            )
        if statistics is not None:
            has_vector, counts_nan = task.deletion_vector is not None, bool(self.nan_counted[index])
            for wrong in contradictions(statistics, columns, has_vector=has_vector, counts_nan=counts_nan):
                yield Violation("statistics", f"the statistics of {name} are false: {wrong}.", file=name)

    def change_file(self, version: int, file: AddCDCFile) -> list[Violation]:
        """Return the violations in one change-data file."""
        violations: list[Violation] = []
        with Reported(violations.append, "change-data", f"Change-data file {file.path}", version, file.path):
            name = decode_path(file.path, self.files.store.url)
            entry = self.files.store.head(name)
            if entry is None:
                return violations
            if entry.size != file.size:
                text = f"change-data file {name} has {entry.size} bytes, the log says {file.size}."
                return [Violation("change-data", text, version, name)]
            with self.files.store.open_input(name) as source, _arrow_errors_as_corruption(name):
                for batch in _parquet(source).iter_batches(_BATCH_ROWS, use_threads=False):
                    position = batch.schema.get_field_index("_change_type")
                    kinds = None if position < 0 else pc.unique(batch.column(position)).to_pylist()
                    if kinds is None or any(kind not in _CHANGE_TYPES for kind in kinds):
                        text = f"change-data file {name} has no _change_type in some rows, or one that is not known."
                        violations.append(Violation("change-data", text, version, name))
                        break
        return violations

    # -- one file ------------------------------------------------------------------------------------------------------------

    def _batches(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return self.data_files.read(task, row_tracking=self.tracking, batch_rows=_BATCH_ROWS, verify_pages=True)

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
            return None  # reported by the check of statistics

    def _missing_columns(self, statistics: FileStatistics, schema: pa.Schema, name: str) -> Iterator[Violation]:
        for leaf in stated_leaves(statistics, self.data_leaves):
            if not _has(schema, leaf, self.find):
                column = ".".join(part.name for part in leaf)
                yield Violation(
                    "statistics",
                    f"the statistics of {name} tell values of column {column}, which the file does not have.",
                    file=name,
                )

    def _partition_columns(self, index: int, source: pa.NativeFile, schema: pa.Schema, name: str) -> Iterator[Violation]:
        """Compare partition columns in the file with the log's values: readers use the log's value, some the file's."""
        values = self.partition_values[index] or {}
        for column in self.config.partition_schema:
            position = self.find(pa.struct(schema), column)
            if position is None or column.physical_name not in values:
                continue
            expected = deserialize(values[column.physical_name], column.data_type)
            with _arrow_errors_as_corruption(name):
                table = _parquet(source).read([schema.field(position).name], use_threads=False)
                distinct = pc.unique(table.column(0)).cast(_plain(schema.field(position).type)).to_pylist()
            if any(not _same(value, expected) for value in distinct):
                yield Violation(
                    "partition",
                    f"file {name} is in partition {column.name} = {expected!r}, but holds {distinct[:3]!r}.",
                    file=name,
                )

    def _tracking(self) -> RowTracking | None:
        columns = materialized_columns(self.config)
        return None if columns is None else RowTracking(row_id_column=_ROW_ID, materialized_row_id_column=columns.row_id)


class _arrow_errors_as_corruption:  # noqa: N801 - read as a phrase
    """A block in which errors of Arrow become corruption errors with the file's name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, pa.ArrowException | OSError | UnicodeDecodeError) and not isinstance(error, TahoeError):
            raise CorruptTable(
                f"Data file '{self._name}' cannot be read as Parquet: {error}.", code="TAHOE_DATA_FILE_DAMAGED", file=self._name
            ) from error


def _parquet(source: pa.NativeFile) -> pq.ParquetFile:
    return pq.ParquetFile(
        source, page_checksum_verification=True, arrow_extensions_enabled=False, coerce_int96_timestamp_unit="us"
    )


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
