"""Equality deletes: delete files of a client with values, whose rows are found in the table (format/spec.md, "Equality Delete Files").

delete files ─► values by columns and partition ─► files whose statistics allow them ─► positions of the equal rows

Streaming writers such as Flink's upserts write them. They concern the rows that the table had before the snapshot, not those that it adds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.base.exceptions import Unsupported
from tahoe.base.json_values import JsonMapping
from tahoe.base.lazy import pc, pq
from tahoe.expr.tree.predicate import And, Column, Comparison, Literal, Predicate
from tahoe.log.replay import add_files
from tahoe.ops.rows.row_changes import bitmap, parts_with_positions, reading_ahead
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.cast import FIELD_ID
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.uniform.commits.client_manifests import ClientFile
from tahoe.uniform.commits.delete_positions import wrong_delete_file
from tahoe.uniform.commits.partition_tuples import partition_texts, python_values

if TYPE_CHECKING:
    from pyroaring import BitMap64

_WITH_BOUNDS = ("byte", "short", "integer", "long", "string", "date")


@dataclass(frozen=True, slots=True)
class DeletedValues:
    """The values of one delete file.

    Args:
        rows: the compared columns, with the table's names and types.
        partition: the partition whose rows are deleted, as in `AddFile.partition_values`; empty for a table without partitions.
    """

    rows: pa.Table
    partition: dict[str, str | None]


def deleted_values(data: bytes, file: ClientFile, config: TableConfig, document: JsonMapping) -> DeletedValues:
    """Return the values of a delete file.

    Args:
        data: its content.
        document: the table's Iceberg metadata.

    Raises:
        InvalidRequest: the file cannot be read, or differs from its manifest or the table.
        Unsupported: a file of another format than Parquet, or fields of structs.
    """
    if file.file_format != "PARQUET":
        raise Unsupported(
            f"The delete file {file.path} is of the format {file.file_format:.20}; this server reads equality deletes in Parquet.",
            code="TAHOE_ICEBERG_DELETES",
            file=file.path,
        )
    columns = [_column(number, file, config) for number in file.equality_ids]
    if not columns:
        raise wrong_delete_file(file, "names no column to compare (equality_ids)")
    try:
        rows = pq.read_table(pa.BufferReader(data))
        by_id = {int((field.metadata or {}).get(FIELD_ID, -1)): number for number, field in enumerate(rows.schema)}
        arrays = [rows.column(by_id[number]) for number in file.equality_ids]
        values = pa.table(dict(zip((column.name for column in columns), arrays, strict=True)))
        values = values.cast(to_arrow_schema(StructType(tuple(columns))))
    except (pa.ArrowException, KeyError, ValueError, TypeError, OSError) as error:
        raise wrong_delete_file(file, f"cannot be read: {type(error).__name__} {error}") from error
    if values.num_rows != file.rows:
        raise wrong_delete_file(file, f"has {values.num_rows} rows, and {file.rows} by its manifest")
    return DeletedValues(values, partition_texts(python_values(file, config, document), config))


def equal_rows(
    snapshot: Snapshot, deletes: Sequence[DeletedValues], left_out: Collection[str]
) -> Iterator[tuple[AddFile, BitMap64]]:
    """Yield the live files of a snapshot with equal rows, and the positions of these. NULL is equal to NULL.

    Args:
        left_out: the paths of files that are removed anyway.
    """
    for group in _groups(deletes):
        values = pa.concat_tables([each.rows for each in group])
        adds = [
            add
            for add in add_files(snapshot.files_matching(_bounds(snapshot.schema, values)))
            if add.path not in left_out and add.partition_values == group[0].partition
        ]
        ahead, matching = reading_ahead(snapshot, adds), _Matching.of(values)
        for add in adds:
            parts = parts_with_positions(ahead, add, values.column_names)
            positions = [places.filter(matching.of_rows(rows)) for rows, places in parts]
            if any(map(len, positions)):
                yield add, bitmap(pa.concat_arrays(positions))


def _groups(deletes: Sequence[DeletedValues]) -> list[list[DeletedValues]]:
    """Return the deletes of the same columns and partition together."""
    groups: dict[object, list[DeletedValues]] = {}
    for each in deletes:
        groups.setdefault((tuple(each.rows.column_names), tuple(sorted(each.partition.items()))), []).append(each)
    return list(groups.values())


def _bounds(schema: StructType, values: pa.Table) -> Predicate | None:
    """Return a condition that all equal rows meet: the range of the values, of columns without NULL among them."""
    parts: list[Predicate] = []
    for name in values.column_names:
        column, kind = values.column(name), schema.field(name).data_type
        if isinstance(kind, PrimitiveType) and kind.name in _WITH_BOUNDS and len(column) and not column.null_count:
            bounds = pc.min_max(column)
            for operator, bound in ((">=", bounds["min"].as_py()), ("<=", bounds["max"].as_py())):
                parts.append(Comparison(operator, Column((name,)), Literal(bound, kind)))
    return And(tuple(parts)) if parts else None


@dataclass(frozen=True, slots=True)
class _Matching:
    """Finds rows whose values in some columns are together among the deleted ones.

    Args:
        columns: for each column its distinct values, and for each but the first the distinct pairs of the code so far and its place there.
    """

    columns: Sequence[tuple[str, pa.Array, pa.Array | None]]

    @classmethod
    def of(cls, values: pa.Table) -> _Matching:
        columns: list[tuple[str, pa.Array, pa.Array | None]] = []
        codes: pa.Array | None = None
        for name in values.column_names:
            distinct = pc.unique(values.column(name))
            places = _places(values.column(name), distinct)
            pairs = None
            if codes is not None:
                joint = _joint(codes, places, len(distinct))
                pairs = pc.unique(joint)
                places = _places(joint, pairs)
            columns.append((name, distinct, pairs))
            codes = places
        return cls(columns)

    def of_rows(self, rows: pa.Table) -> pa.Array:
        """Return a mask of the equal rows."""
        codes: pa.Array | None = None
        for name, distinct, pairs in self.columns:
            places = _places(rows.column(name), distinct)
            codes = (
                places if codes is None or pairs is None else _places(_joint(codes, places, len(distinct)), pairs, nulls=False)
            )
        return pc.is_valid(codes)


def _places(values: pa.ChunkedArray | pa.Array, distinct: pa.Array, *, nulls: bool = True) -> pa.Array:
    """Return the place of each value among the distinct ones; null for a value that is not there.

    Args:
        nulls: whether NULL is a value.
    """
    places = pc.index_in(values, value_set=distinct, skip_nulls=not nulls)
    return places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places


def _joint(codes: pa.Array, places: pa.Array, count: int) -> pa.Array:
    """Return one number for each pair of a code and a place below `count`; null if one of them is."""
    return pc.add(pc.multiply(codes.cast(pa.int64()), pa.scalar(count, pa.int64())), places.cast(pa.int64()))


def _column(number: int, file: ClientFile, config: TableConfig) -> StructField:
    for column in config.schema:
        if column.field_id == number:
            if isinstance(column.data_type, StructType | ArrayType | MapType):
                break
            return column
    raise Unsupported(
        f"The delete file {file.path} compares the column with the id {number}, which is no column of table {config.table} outside of "
        "structs. Write position deletes or deletion vectors.",
        code="TAHOE_ICEBERG_DELETES",
        file=file.path,
    )
