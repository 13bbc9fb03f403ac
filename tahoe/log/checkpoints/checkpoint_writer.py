"""Writes classic checkpoints straight from Arrow columns (PROTOCOL.md, "Checkpoints", "Checkpoint Schema").

The layout serves partial reads: all other actions come before the live files, in row groups of their own, so that protocol and metadata
cost one small read. The live files follow in the order of the log, which keeps files that were added together in one row group, so that
its Parquet statistics over ``stats_parsed`` can skip it. Checksums of pages and an embedded checksum of the footer reveal a flipped bit.

A checkpoint is published only if its footer counts every row that was to be written; ``_last_checkpoint`` is written after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from zlib import crc32

import pyarrow as pa

from tahoe.base.exceptions import TahoeError
from tahoe.base.lazy import pq
from tahoe.base.progress import Progress, silent, tracked
from tahoe.log.checkpoints.checkpoint_checksum import checkpoint_with_checksum, footer_of
from tahoe.log.checkpoints.checkpoint_rows import (
    REMOVE_TYPE,
    SINGLE_SCHEMA,
    AddColumns,
    RowEncoder,
    pieces,
    single_actions,
    unexpired,
)
from tahoe.log.checkpoints.footer_check import vouch_for_footer
from tahoe.log.files.last_checkpoint import LastCheckpoint, publish
from tahoe.log.files.live_files import table_of_rows
from tahoe.log.files.paths import checkpoint_name
from tahoe.protocol.config import TableConfig
from tahoe.protocol.statistics.parquet_join import join_parquet
from tahoe.protocol.table_state import TableState
from tahoe.store.log_store import LogStore

ROWS_IN_ROW_GROUP = 100_000
"""Live files in one row group: enough for Parquet, few enough that a selective scan skips most of a large table."""


def write_checkpoint(
    store: LogStore,
    version: int,
    state: TableState,
    files: pa.Table,
    tombstones: pa.Table,
    config: TableConfig,
    *,
    now_ms: int,
    progress: Progress = silent,
) -> LastCheckpoint:
    """Write the classic checkpoint of a version, and ``_last_checkpoint`` unless that names a newer one.

    Args:
        state: of that version.
        files: its live files (`tahoe.log.replay.LogReader.files`).
        tombstones: the removed files (`tahoe.log.replay.LogReader.tombstones`); those older than
            ``delta.deletedFileRetentionDuration`` are left out, as are transactions older than
            ``delta.setTransactionRetentionDuration``.
        config: of that version.
        now_ms: milliseconds since the epoch.
        progress: reports the encoded row groups.
    """
    unexpired_tombstones = unexpired(tombstones, now_ms - config.properties.deleted_file_retention_ms)
    single = single_actions(state, config, now_ms)
    data = encode_checkpoint(single, files, unexpired_tombstones, config, progress)
    expected = len(single) + unexpired_tombstones.num_rows + files.num_rows
    verify_encoded(data, expected, files.num_rows, store.url, version)
    data = checkpoint_with_checksum(data, version)
    store.put(checkpoint_name(version), data)
    footer = footer_of(data)
    vouch_for_footer(footer)
    hint = LastCheckpoint(version, expected, size_in_bytes=len(data), num_of_add_files=files.num_rows, footer_crc32=crc32(footer))
    publish(store, hint)
    return hint


def encode_checkpoint(
    single: Sequence[dict[str, Any]],
    files: pa.Table,
    tombstones: pa.Table,
    config: TableConfig,
    progress: Progress = silent,
) -> bytes:
    """The bytes of a checkpoint.

    Args:
        single: the actions that are not files, one mapping from the action's name to its members each.
    """
    add_columns = AddColumns.of(config)
    schema = pa.schema([*SINGLE_SCHEMA, ("add", add_columns.type), ("remove", REMOVE_TYPE)])
    encoder = RowEncoder.of(schema)
    jobs: list[Callable[[], pa.Table]] = [lambda: table_of_rows(single, schema)]
    jobs += [partial(encoder.rows, "remove", piece, pa.Table.to_struct_array) for piece in pieces(tombstones, ROWS_IN_ROW_GROUP)]
    jobs += [partial(encoder.rows, "add", piece, add_columns.of_files) for piece in pieces(files, ROWS_IN_ROW_GROUP)]
    if files.num_rows + tombstones.num_rows <= _ROWS_WORTH_THREADS:
        return encoder.encode(job() for job in jobs)
    with ThreadPoolExecutor(_THREADS) as pool:
        parts = pool.map(lambda job: encoder.encode([job()]), jobs)
        return join_parquet(tracked(parts, progress, "row groups encoded", len(jobs)))


_THREADS = min(4, os.cpu_count() or 1)
# For fewer rows, threads and the joining of their results take longer than a single thread.
_ROWS_WORTH_THREADS = 10_000


def verify_encoded(data: bytes, rows: int, adds: int, url: str, version: int) -> None:
    """Raise if the footer of the encoded checkpoint does not count every row and every live file; nothing is published then."""
    metadata = pq.read_metadata(pa.BufferReader(data))
    position = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == "add.path")
    written = 0
    for i in range(metadata.num_row_groups):
        column = metadata.row_group(i).column(position)
        written += column.num_values - column.statistics.null_count
    if metadata.num_rows != rows or written != adds:
        raise TahoeError(
            f"Table {url}: the checkpoint of version {version} was not written, because it has "
            f"{metadata.num_rows} actions and "
            f"{written} files in place of {rows} and {adds}. The table is complete without it; write the checkpoint again.",
            code="DELTA_CHECKPOINT_SNAPSHOT_MISMATCH",
            table=url,
            version=version,
        )
