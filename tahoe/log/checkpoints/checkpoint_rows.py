"""Actions as the rows of a checkpoint's Parquet files (PROTOCOL.md, "Checkpoint Schema"): columns made of Arrow columns, and encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc, pq
from tahoe.log.files.columns import cast_members
from tahoe.log.files.live_files import FILES_SCHEMA, STRING_MAP, TOMBSTONES_SCHEMA
from tahoe.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.protocol.skipping import partition_column
from tahoe.protocol.statistics.collect import indexed_columns, stats_arrow_type
from tahoe.protocol.statistics.stats_json import parse_statistics
from tahoe.protocol.table_state import TableState
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.arrow_values import combined, scalar
from tahoe.schema.types import StructField


@dataclass(frozen=True, slots=True)
class RowEncoder:
    """Makes row groups, and encodes them as Parquet."""

    schema: pa.Schema
    repetitive_leaves: list[str]

    @classmethod
    def of(cls, schema: pa.Schema) -> RowEncoder:
        """For files of that schema."""
        return cls(schema, _repetitive_leaves(schema))

    def rows(self, name: str, piece: pa.Table, structs: Callable[[pa.Table], pa.StructArray]) -> pa.Table:
        """Return rows in which only the struct column `name` is set."""
        values = combined(structs(piece.combine_chunks()))
        columns = [values if field.name == name else pa.nulls(len(values), field.type) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def encode(self, row_groups: Iterable[pa.Table]) -> bytes:
        """A Parquet file with these row groups, and a checksum on each page."""
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


SINGLE_SCHEMA = pa.schema(
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
"""The columns of actions other than live files and tombstones."""
REMOVE_TYPE = pa.struct(list(TOMBSTONES_SCHEMA))
"""Of the `remove` struct."""

_UNIQUE_LEAVES = ("path", "stats", "pathOrInlineDv", "minValues", "maxValues", "schemaString")


def single_actions(state: TableState, config: TableConfig, now_ms: int) -> list[dict[str, Any]]:
    """The actions of a version that are not files, one mapping from the action's name to its members each, without expired
    transactions."""
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


def unexpired(tombstones: pa.Table, older_than_ms: int) -> pa.Table:
    """Return the tombstones that are not expired. A tombstone without a time counts as expired, as in delta-spark."""
    times = pc.fill_null(tombstones.column("deletionTimestamp"), scalar(0))
    return tombstones.filter(pc.greater(times, scalar(older_than_ms)))


@dataclass(frozen=True, slots=True)
class AddColumns:
    """The columns of the `add` struct, which depend on the table's properties.

    Args:
        json: whether statistics are written as text.
        statistics: the type of ``stats_parsed``; None if statistics are not written as structs.
        partitions: the columns of ``partitionValues_parsed``; empty if it is not written.
    """

    json: bool
    statistics: pa.StructType | None
    partitions: tuple[StructField, ...]

    @classmethod
    def of(cls, config: TableConfig) -> AddColumns:
        """As the properties of that version ask."""
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
        """Of the `add` struct."""
        fields = [field for field in FILES_SCHEMA if field.name != "stats" or self.json]
        if self.statistics is not None:
            fields.append(pa.field("stats_parsed", self.statistics))
        if self.partitions:
            fields.append(pa.field("partitionValues_parsed", pa.struct([_partition_field(column) for column in self.partitions])))
        return pa.struct(fields)

    def of_files(self, files: pa.Table) -> pa.StructArray:
        """The `add` struct of each file. A row of a checkpoint changes no data."""
        columns = {name: combined(files.column(name)) for name in FILES_SCHEMA.names if name != "stats" or self.json}
        columns["dataChange"] = pa.repeat(scalar(False), files.num_rows)
        if self.statistics is not None:
            columns["stats_parsed"] = _statistics(files, self.statistics)
        if self.partitions:
            values = [partition_column(files, column) for column in self.partitions]
            kinds = [_partition_field(column) for column in self.partitions]
            columns["partitionValues_parsed"] = pa.StructArray.from_arrays(values, fields=kinds)
        return pa.StructArray.from_arrays([columns[field.name] for field in self.type], fields=list(self.type))


def _statistics(files: pa.Table, shape: pa.StructType) -> pa.StructArray:
    """Statistics as structs: as they are where an older checkpoint had them, parsed from their text elsewhere."""
    texts = combined(files.column("stats"))
    if "stats_parsed" not in files.column_names:
        return combined(parse_statistics(texts, shape))
    carried = cast_members(combined(files.column("stats_parsed")), shape)
    missing = pc.and_(carried.is_null(), texts.is_valid())
    if not missing.true_count:
        return carried
    parsed = combined(parse_statistics(texts.filter(missing), shape))
    ranks = pc.add(pc.cumulative_sum(missing.cast(pa.int64())), scalar(len(carried) - 1, pa.int64()))
    return pa.concat_arrays([carried, parsed]).take(pc.if_else(missing, ranks, pa.arange(0, len(carried))))


def _partition_field(column: StructField) -> pa.Field:
    return pa.field(column.physical_name, to_arrow_type(column.data_type))


def pieces(table: pa.Table, most: int) -> Iterator[pa.Table]:
    """Split the table into pieces of at most `most` rows, at the ends of chunks so that little is copied; small chunks are joined."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in table.to_batches(max_chunksize=most):
        if rows + batch.num_rows > most:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
        waiting.append(batch)
        rows += batch.num_rows
    if rows:
        yield pa.Table.from_batches(waiting)


def _repetitive_leaves(schema: pa.Schema) -> list[str]:
    """Return the leaf columns for which a dictionary saves space: all except those whose values rarely repeat."""
    empty = pa.BufferOutputStream()
    with pq.ParquetWriter(empty, schema):
        pass
    parquet = pq.read_metadata(pa.BufferReader(empty.getvalue())).schema
    paths = [parquet.column(i).path for i in range(len(parquet))]
    return [path for path in paths if not any(part in _UNIQUE_LEAVES for part in path.split("."))]
