"""UPDATE without deletion vectors: encode the changed columns of a file, and copy the other columns as they are.

    positions of changed rows ─► new values of the assigned columns ─► encoded, with the row groups of the file ─┐
    file ─ encoded bytes of its other columns ──────────────────────────────────────────────────────────────────┴─► new file, AddFile

Most of the time of a rewrite is decoding and encoding columns that do not change. Where a file's layout differs from that of the table's
new files, or rows must be checked or need ids, the whole file is rewritten in the usual way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import starmap

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.exceptions import StorageFailure
from tahoe.base.lazy import cached_property, pc, pq
from tahoe.base.progress import Progress, silent, tracked
from tahoe.expr.tree.expression import columns as columns_of
from tahoe.ops.rows.assignments import Assignment, assigned
from tahoe.ops.rows.row_changes import FileChange, file_with_positions, is_in
from tahoe.ops.write.enforce import LimitedTexts
from tahoe.ops.write.file_layout import row_groups_in_layout
from tahoe.ops.write.file_stream import new_name
from tahoe.ops.write.parquet_files import ParquetFormat, encoded_groups
from tahoe.ops.write.stored_layout import Layout, file_schema
from tahoe.ops.write.writer import tagged
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import constraints_of
from tahoe.protocol.nan_bounds import has_greatest_float, is_nan_counted, is_stated, with_stats_text
from tahoe.protocol.row_tracking import materialized_columns
from tahoe.protocol.statistics.bounds import Leaf
from tahoe.protocol.statistics.collect import StatisticsCollector, indexed_columns, string_prefix_length
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.protocol.statistics.parquet_join import replace_columns
from tahoe.schema.arrow_values import combined
from tahoe.schema.types import StructType
from tahoe.snapshot.read_errors import naming
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path, encode_path
from tahoe.store.side_by_side import in_threads

_MOST_BYTES = 256 * 1024 * 1024
"""The largest file that is copied in memory."""
_MOST_BYTES_EACH = 32 * 1024 * 1024
"""The largest file that is copied while others are."""


@dataclass(frozen=True)
class ChangedColumns:
    """The assignments of an UPDATE whose columns can be written without the others.

    Args:
        snapshot: the version that it changes, and whose layout the new files have.
    """

    snapshot: Snapshot
    assignments: Sequence[Assignment]

    def rewritten(self, changes: Sequence[FileChange], clock: Clock, progress: Progress = silent) -> dict[str, AddFile]:
        """Write new files for the changed files of which columns can be copied.

        Args:
            progress: called with the number of files rewritten.

        Returns:
            The actions that add the new files, by the paths of the files that they replace. Nothing is staged.

        Raises:
            StorageFailure: from the store; files already written are deleted as far as storage allows.
        """
        if not changes or not self._are_alone:
            return {}
        config, now = self.snapshot.config, clock.now_ms()
        names = [new_name(config, clock, change.add.partition_values, number) for number, change in enumerate(changes)]
        try:
            files = self._files(list(zip(changes, names, strict=True)))
            written = list(tracked(files, progress, "files rewritten", len(changes)))
        except BaseException:
            for name in names:
                with suppress(StorageFailure):
                    self.snapshot.store.delete(name)
            raise
        pairs = zip(changes, written, strict=True)
        return {change.add.path: replace(add, modification_time=now) for change, add in pairs if add is not None}

    def _files(self, named: Sequence[tuple[FileChange, str]]) -> Iterator[AddFile | None]:
        sizes = [change.add.size for change, _ in named]
        # Large files one after the other: each is in memory twice.
        if max(sizes) > _MOST_BYTES_EACH:
            return starmap(self._file, named)
        return in_threads(self.snapshot.store, lambda pair: self._file(*pair), named, sum(sizes))

    @cached_property
    def _schema(self) -> StructType:
        """The assigned columns."""
        names = {assignment.path[0] for assignment in self.assignments}
        return StructType(tuple(column for column in self.snapshot.schema if column.name in names))

    @cached_property
    def _config(self) -> TableConfig:
        """The table as if it had the assigned columns only."""
        config = self.snapshot.config
        return replace(config, metadata=replace(config.metadata, schema_string=self._schema.to_json(), partition_columns=()))

    @cached_property
    def _format(self) -> ParquetFormat:
        of_table, names = ParquetFormat.of(self.snapshot.config), {column.physical_name for column in self._schema}
        filters = [path for path in of_table.bloom_filters if path.partition(".")[0] in names]
        return replace(of_table, bloom_filters=filters)

    @cached_property
    def _are_alone(self) -> bool:
        """Whether values of other columns neither change with the assigned ones nor are needed to check a row."""
        config = self.snapshot.config
        partitioned = {name.lower() for name in config.partition_columns}
        return (
            not constraints_of(config)
            and materialized_columns(config) is None
            and not any(column.name.lower() in partitioned for column in self._schema)
        )

    def _file(self, change: FileChange, name: str) -> AddFile | None:
        """Write the new file; None if columns cannot be copied."""
        add, store = change.add, self.snapshot.store
        old = None if add.stats is None or add.deletion_vector is not None else FileStatistics.from_json(add.stats)
        if old is None or add.size > _MOST_BYTES or not self._has_all(old):
            return None
        content = store.get(decode_path(add.path, store.url, outside=True))
        sizes = row_groups_in_layout(pq.read_metadata(pa.BufferReader(content)), file_schema(self.snapshot.config))
        if sizes is None or sum(sizes) != change.living:
            return None
        rows = self._new_rows(change)
        collected = StatisticsCollector(
            self._leaves(changed=True), string_prefix_length(self.snapshot.config.metadata.configuration)
        )
        collected.add(rows)
        new = replace_columns(content, encoded_groups(rows, self._format, sizes))
        if new is None:
            return None
        store.put(name, new)
        return self._added(add, name, len(new), old, collected.statistics())

    def _new_rows(self, change: FileChange) -> pa.Table:
        """Return the assigned columns of all rows of a file, as they are stored."""
        snapshot = self.snapshot
        needed = {column.name for column in self._schema}
        needed |= {column for assignment in self.assignments for _, column in columns_of(assignment.value)}
        rows, positions = file_with_positions(snapshot, change.add, sorted(needed))
        chosen = is_in(positions, change.dead)
        before = rows.filter(chosen)
        with naming(snapshot.store.url, snapshot.version, change.add.path):
            after = assigned(before, self._schema, self.assignments, before)
        arrays = [_replaced(rows.column(field.name), chosen, after.column(field.name)) for field in after.schema]
        layout = Layout.of(self._config)
        limited = LimitedTexts(self._schema, snapshot.config.table)
        return limited(layout.conformed(pa.Table.from_arrays(arrays, schema=after.schema))).select(layout.file_columns)

    def _added(self, add: AddFile, name: str, size: int, old: FileStatistics, new: FileStatistics) -> AddFile:
        """Return the action that adds the new file, with the statistics of its copied and of its new columns."""
        names = {column.physical_name for column in self._schema}
        unchanged = old.without(names)
        # A greatest float without the tag may leave NaN out.
        is_counted = is_nan_counted(add.tags) or not has_greatest_float(unchanged, self._leaves(changed=False))
        statistics = replace(
            unchanged,
            min_values={**unchanged.min_values, **new.min_values},
            max_values={**unchanged.max_values, **new.max_values},
            null_count={**unchanged.null_count, **new.null_count},
        )
        nan_counted = is_counted and has_greatest_float(statistics, self._all_leaves)
        written = AddFile(encode_path(name), dict(add.partition_values), size, modification_time=0, data_change=True)
        return tagged(self.snapshot.config, with_stats_text(written, statistics.to_json(), nan_counted=nan_counted))

    @cached_property
    def _all_leaves(self) -> Sequence[Leaf]:
        """The columns that have statistics."""
        config = self.snapshot.config
        return indexed_columns(config.schema, config.partition_columns, config.metadata.configuration)

    def _leaves(self, *, changed: bool) -> list[Leaf]:
        names = {column.name for column in self._schema}
        return [leaf for leaf in self._all_leaves if (leaf[0].name in names) == changed]

    def _has_all(self, statistics: FileStatistics) -> bool:
        """Whether the log has the statistics of the copied columns."""
        return all(is_stated(statistics.null_count, leaf) for leaf in self._leaves(changed=False))


def _replaced(old: pa.ChunkedArray, chosen: pa.Array, new: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return a column with new values in the chosen rows."""
    values, others = combined(old.cast(new.type)), combined(new)
    if not pa.types.is_nested(new.type):
        return pc.replace_with_mask(values, chosen, others)
    numbers = pc.add(pc.cumulative_sum(chosen.cast(pa.int64())), len(values) - 1)
    return pa.concat_arrays([values, others]).take(pc.if_else(chosen, numbers, pa.arange(0, len(values))))
