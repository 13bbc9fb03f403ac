"""Writes classic checkpoints straight from Arrow columns (PROTOCOL.md, "Checkpoints", "Checkpoint Schema").

The layout serves those who read a part: what is not a live file comes first, in row groups of its own, so that protocol and
metadata cost one small read; the live files follow in the order of the log, which keeps files that were added together in one
row group, so that its Parquet statistics over ``stats_parsed`` can leave it out. Pages carry checksums and the footer a seal, which tell a
flipped bit.

A checkpoint counts only when its footer shows every row that was to be written; ``_last_checkpoint`` is written after it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import pyarrow as pa

from tahoe.exceptions import TahoeError
from tahoe.lazy import pc, pq
from tahoe.log.checkpoints.checkpoint_seal import checkpoint_with_seal, footer_of
from tahoe.log.checkpoints.footer_check import vouch_for_footer
from tahoe.log.checkpoints.parquet_join import join_parquet
from tahoe.log.files.columns import cast_members
from tahoe.log.files.last_checkpoint import LastCheckpoint, read_last_checkpoint, write_last_checkpoint
from tahoe.log.files.live_files import FILES_SCHEMA, STRING_MAP, TOMBSTONES_SCHEMA
from tahoe.log.files.paths import checkpoint_name
from tahoe.progress import Progress, silent, tracked
from tahoe.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.protocol.skipping import partition_column
from tahoe.protocol.statistics.collect import indexed_columns, stats_arrow_type
from tahoe.protocol.statistics.stats_json import parse_statistics
from tahoe.protocol.table_state import TableState
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.arrow_values import array, scalar
from tahoe.schema.types import StructField
from tahoe.store.log_store import LogStore

__all__ = ["ROWS_IN_ROW_GROUP", "encode_checkpoint", "write_checkpoint"]

logger = logging.getLogger(__name__)

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
        tombstones: what was removed (`tahoe.log.replay.LogReader.tombstones`); those older than
            ``delta.deletedFileRetentionDuration`` are left out, as are transactions older than
            ``delta.setTransactionRetentionDuration``.
        config: of that version.
        now_ms: milliseconds since the epoch.
        progress: told of row groups encoded.
    """
    kept = _unexpired(tombstones, now_ms - config.properties.deleted_file_retention_ms)
    single = _single_actions(state, config, now_ms)
    data = encode_checkpoint(single, files, kept, config, progress)
    expected = len(single) + kept.num_rows + files.num_rows
    _verify(data, expected, files.num_rows, store.url, version)
    data = checkpoint_with_seal(data, version)
    store.put(checkpoint_name(version), data)
    footer = footer_of(data)
    vouch_for_footer(footer)
    hint = LastCheckpoint(version, expected, size_in_bytes=len(data), num_of_add_files=files.num_rows, footer_crc32=crc32(footer))
    known = read_last_checkpoint(store)
    if known is None or known.version <= version:
        write_last_checkpoint(store, hint)
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
    wanted = _AddColumns.of(config)
    schema = pa.schema([*_SINGLE_SCHEMA, ("add", wanted.type), ("remove", _REMOVE_TYPE)])
    encoder = _Encoder(schema, _repetitive_leaves(schema))
    jobs: list[Callable[[], pa.Table]] = [lambda: _single_rows(single, schema)]
    jobs += [partial(encoder.rows, "remove", piece, pa.Table.to_struct_array) for piece in _pieces(tombstones)]
    jobs += [partial(encoder.rows, "add", piece, wanted.of_files) for piece in _pieces(files)]
    if files.num_rows + tombstones.num_rows <= _ROWS_WORTH_THREADS:
        return encoder.encode(job() for job in jobs)
    with ThreadPoolExecutor(_THREADS) as pool:
        parts = pool.map(lambda job: encoder.encode([job()]), jobs)
        return join_parquet(list(tracked(parts, progress, "row groups encoded", len(jobs))))


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Makes row groups, and encodes them as Parquet."""

    schema: pa.Schema
    repetitive_leaves: list[str]

    def rows(self, name: str, piece: pa.Table, structs: Callable[[pa.Table], pa.StructArray]) -> pa.Table:
        """Rows that hold one struct column each."""
        values = _one_array(structs(piece.combine_chunks()))
        columns = [values if field.name == name else pa.nulls(len(values), field.type) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def encode(self, row_groups: Iterable[pa.Table]) -> bytes:
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(
            sink,
            self.schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=self.repetitive_leaves,
            write_page_checksum=True,
            store_schema=False,
        ) as writer:
            for rows in row_groups:
                writer.write_table(rows)
        return bytes(sink.getvalue().to_pybytes())


_SINGLE_SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", STRING_MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", STRING_MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        ("domainMetadata", pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])),
    ]
)
_REMOVE_TYPE = pa.struct(list(TOMBSTONES_SCHEMA))
_THREADS = min(4, os.cpu_count() or 1)
# Below, threads and the joining of what they made take longer than one after the other.
_ROWS_WORTH_THREADS = 10_000
_UNIQUE_LEAVES = ("path", "stats", "pathOrInlineDv", "minValues", "maxValues", "schemaString")


def _single_actions(state: TableState, config: TableConfig, now_ms: int) -> list[dict[str, Any]]:
    retention_ms = config.properties.set_transaction_retention_ms
    lines: list[dict[str, Any]] = [_named("protocol", state.protocol), _named("metaData", state.metadata)]
    for transaction in state.transactions.values():
        updated = transaction.last_updated
        if retention_ms is None or updated is None or updated > now_ms - retention_ms:
            lines.append(_named("txn", transaction))
    lines += [_named("domainMetadata", domain) for domain in state.domains.values() if not domain.removed]
    return lines


def _named(name: str, action: Protocol | Metadata | SetTransaction | DomainMetadata) -> dict[str, Any]:
    value = action.to_json_value()
    if name == "metaData":
        value["configuration"] = list(value["configuration"].items())
        value["format"] = {"provider": value["format"]["provider"], "options": list(value["format"]["options"].items())}
    return {name: value}


def _unexpired(tombstones: pa.Table, older_than_ms: int) -> pa.Table:
    """A tombstone without a time is taken for very old, as the reference takes it."""
    times = pc.fill_null(tombstones.column("deletionTimestamp"), scalar(0))
    return tombstones.filter(pc.greater(times, scalar(older_than_ms)))


@dataclass(frozen=True, slots=True)
class _AddColumns:
    """Which columns the `add` struct has, as the table's properties ask for them.

    Args:
        json: whether statistics are written as text.
        statistics: the type of ``stats_parsed``; None where statistics are not written as structs.
        partitions: the columns of ``partitionValues_parsed``; empty where it is not written.
    """

    json: bool
    statistics: pa.StructType | None
    partitions: tuple[StructField, ...]

    @classmethod
    def of(cls, config: TableConfig) -> _AddColumns:
        properties, schema = config.properties, config.schema
        statistics = None
        partitions: tuple[StructField, ...] = ()
        if properties.write_stats_as_struct:
            indexed = indexed_columns(schema, config.partition_columns, config.metadata.configuration)
            statistics = stats_arrow_type(schema, indexed)
            partitions = tuple(schema.field(name) for name in config.partition_columns)
        return cls(properties.write_stats_as_json, statistics, partitions)

    @property
    def type(self) -> pa.StructType:
        fields = [field for field in FILES_SCHEMA if field.name != "stats" or self.json]
        if self.statistics is not None:
            fields.append(pa.field("stats_parsed", self.statistics))
        if self.partitions:
            fields.append(pa.field("partitionValues_parsed", pa.struct([_partition_field(column) for column in self.partitions])))
        return pa.struct(fields)

    def of_files(self, files: pa.Table) -> pa.StructArray:
        """The `add` struct of each file. A row of a checkpoint changes no data."""
        columns = {name: _one_array(files.column(name)) for name in FILES_SCHEMA.names if name != "stats" or self.json}
        columns["dataChange"] = pa.repeat(scalar(False), files.num_rows)
        if self.statistics is not None:
            columns["stats_parsed"] = _statistics(files, self.statistics)
        if self.partitions:
            values = [partition_column(files, column) for column in self.partitions]
            kinds = [_partition_field(column) for column in self.partitions]
            columns["partitionValues_parsed"] = pa.StructArray.from_arrays(values, fields=kinds)
        return pa.StructArray.from_arrays([columns[field.name] for field in self.type], fields=list(self.type))


def _statistics(files: pa.Table, wanted: pa.StructType) -> pa.StructArray:
    """Statistics as structs: as they are where an older checkpoint had them, parsed from their text elsewhere."""
    texts = _one_array(files.column("stats"))
    if "stats_parsed" not in files.column_names:
        return _one_array(parse_statistics(texts, wanted))
    carried = cast_members(_one_array(files.column("stats_parsed")), wanted)
    missing = pc.and_(carried.is_null(), texts.is_valid())
    if not missing.true_count:
        return carried
    parsed = _one_array(parse_statistics(texts.filter(missing), wanted))
    ranks = pc.add(pc.cumulative_sum(missing.cast(pa.int64())), len(carried) - 1)
    return pa.concat_arrays([carried, parsed]).take(pc.if_else(missing, ranks, _counting(len(carried))))


def _partition_field(column: StructField) -> pa.Field:
    return pa.field(column.physical_name, to_arrow_type(column.data_type))


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    """The table in row groups, cut where its chunks end so that little is copied; small chunks are joined."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in table.to_batches(max_chunksize=ROWS_IN_ROW_GROUP):
        if rows + batch.num_rows > ROWS_IN_ROW_GROUP:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
        waiting.append(batch)
        rows += batch.num_rows
    if rows:
        yield pa.Table.from_batches(waiting)


def _one_array(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def _single_rows(actions: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    columns = [array([action.get(field.name) for action in actions], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _repetitive_leaves(schema: pa.Schema) -> list[str]:
    """The leaf columns for which a dictionary pays: all but those whose values hardly ever repeat."""
    empty = pa.BufferOutputStream()
    with pq.ParquetWriter(empty, schema):
        pass
    parquet = pq.read_metadata(pa.BufferReader(empty.getvalue())).schema
    paths = [parquet.column(i).path for i in range(len(parquet))]
    return [path for path in paths if not any(part in _UNIQUE_LEAVES for part in path.split("."))]


def _verify(data: bytes, rows: int, adds: int, url: str, version: int) -> None:
    """The footer of what was encoded shows every row, or nothing is published."""
    metadata = pq.read_metadata(pa.BufferReader(data))
    position = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == "add.path")
    written = 0
    for i in range(metadata.num_row_groups):
        column = metadata.row_group(i).column(position)
        written += column.num_values - column.statistics.null_count
    if metadata.num_rows != rows or written != adds:
        raise TahoeError(
            f"Table {url}: the checkpoint of version {version} was not written, for it came out with "
            f"{metadata.num_rows} actions and "
            f"{written} files in place of {rows} and {adds}. The table is whole without it; write the checkpoint again.",
            code="DELTA_CHECKPOINT_SNAPSHOT_MISMATCH",
            table=url,
            version=version,
        )


def _counting(count: int) -> pa.Array:
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)
