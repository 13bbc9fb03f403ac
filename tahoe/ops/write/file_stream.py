"""One data file written row group by row group, so that it may be larger than memory.

rows of one partition, in batches ─► row groups of a bounded size ─► Parquet, into the store's output stream ─► AddFile with statistics
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.lazy import pq
from tahoe.ops.write.parquet_files import BYTES_OF_A_GROUP, ROWS_OF_A_GROUP, ParquetFormat, parquet_writer
from tahoe.ops.write.stored_layout import Layout
from tahoe.ops.write.writer import file_name
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.nan_bounds import with_statistics
from tahoe.protocol.statistics.collect import StatisticsCollector, indexed_columns, string_prefix_length
from tahoe.schema.evolve import check_holds_data
from tahoe.snapshot.memory_release import MemoryRelease
from tahoe.store.location import encode_path
from tahoe.store.log_store import LogStore


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file to be written.

    Args:
        name: from `new_name`.
        partition_values: by physical name, as in the log.
        stored: the table's configuration with the types of the rows in the file, if they differ.
    """

    name: str
    partition_values: Mapping[str, str | None]
    stored: TableConfig | None = None


def new_name(config: TableConfig, clock: Clock, partition_values: Mapping[str, str | None], number: int = 0) -> str:
    """Return a unique name for a new file of a partition, with the suffix of the table's codec."""
    return file_name(
        config, clock, partition_values, f"part-{number:05d}", ParquetFormat.of(config, with_bloom_filters=False).suffix
    )


def write_stream(
    config: TableConfig, store: LogStore, batches: Iterable[pa.RecordBatch], clock: Clock, file: NewFile
) -> AddFile | None:
    """Write the rows of one file, and return the action that adds it, with ``dataChange`` false; None if there are no rows.

    Args:
        config: the configuration of the file; with the columns of row ids if the rows carry theirs (`config_with_row_ids`).
        batches: rows that a `tahoe.snapshot.scan.Scan` has read from the table, all of one partition. The caller ensures that they
            satisfy the table's constraints.

    Raises:
        StorageFailure: from the store; no file remains under the name.
    """
    check_holds_data(config.schema)
    layout, configuration = Layout.of(file.stored or config), config.metadata.configuration
    indexed = indexed_columns(config.schema, config.partition_columns, configuration)
    collected = StatisticsCollector(indexed, string_prefix_length(configuration), texts_by_footer=True)
    footers: list[pq.FileMetaData] = []
    parquet_format = ParquetFormat.of(config)
    with closing(_row_groups(layout, batches)) as groups:
        first = next(groups, None)
        if first is None:
            return None
        now = clock.now_ms()
        with store.open_output(file.name) as sink:
            group, are_all = first
            memory_release = MemoryRelease()
            del first
            with parquet_writer(sink, group, parquet_format, are_all=are_all, footers=footers) as writer:
                while True:
                    writer.write_table(group, row_group_size=group.num_rows)
                    collected.add(group)
                    size = group.nbytes
                    del group  # before the next group is built
                    memory_release.passed(size)
                    following = next(groups, None)
                    if following is None:
                        break
                    group, _ = following
                    del following
            size = sink.tell()
    add = AddFile(encode_path(file.name), dict(file.partition_values), size, modification_time=now, data_change=False)
    return with_statistics(add, collected.statistics(footers[0]), indexed)


def _row_groups(layout: Layout, batches: Iterable[pa.RecordBatch]) -> Generator[tuple[pa.Table, bool], None, None]:
    """Yield the rows in stored form, in tables of the size of a row group, each with whether it is the last."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        table = layout.conformed(pa.Table.from_batches([batch]), are_valid=True).select(layout.file_columns)
        more = table.nbytes
        if waiting and (rows + table.num_rows > ROWS_OF_A_GROUP or size + more > BYTES_OF_A_GROUP):
            group = pa.concat_tables(waiting)
            waiting, rows, size = [], 0, 0
            yield group, False
            del group
        waiting.append(table)
        rows, size = rows + table.num_rows, size + more
        del table, batch
    if waiting:
        yield pa.concat_tables(waiting), True
