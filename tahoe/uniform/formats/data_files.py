"""Encodes data files of the log as Iceberg data files, from their add actions alone: no data file is opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeGuard

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, Unsupported
from tahoe.base.json_values import JsonMapping
from tahoe.base.lazy import pc
from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor, vector_of
from tahoe.protocol.iceberg_compat import DELETES_PROPERTY
from tahoe.protocol.nan_bounds import is_float, is_nan_counted
from tahoe.protocol.partition import deserialize
from tahoe.schema.collations import is_collated
from tahoe.schema.types import StructField, StructType
from tahoe.uniform.formats.avro import encode_bytes, encode_long, encode_string
from tahoe.uniform.formats.iceberg_schema import partition_fields, primitive_columns
from tahoe.uniform.formats.manifest_schema import Spec
from tahoe.uniform.formats.manifests import DataFile, PartitionSummary
from tahoe.uniform.formats.single_values import Codec, codec_of

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_HEAD = encode_long(0)  # content: data
_FORMAT = encode_string("PARQUET")
_NONE = b"\0"
_SOME = b"\2"
_UNUSED = _NONE * 4  # key metadata, split offsets, equality ids, sort order
# Numbers with a decimal point stay text, so that decimals keep every digit.
_DECODER = json.JSONDecoder(parse_float=str)
_KNOWN_PARTITIONS = 10_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_LIMITS = {
    pa.date32().id: (_FIRST_DAY, _LAST_DAY),
    pa.timestamp("us").id: (_FIRST_DAY * 86_400_000_000, (_LAST_DAY + 1) * 86_400_000_000 - 1),
}
FILES_COLUMNS = (
    *("path", "partitionValues", "size", "stats", "stats_parsed", "tags", "deletionVector"),
    *("baseRowId", "defaultRowCommitVersion"),
)
"""The columns needed of the files table (`tahoe.log.replay.FILES_SCHEMA`, and ``stats_parsed`` if there is one)."""


class Target(NamedTuple):
    """A data file from which rows are deleted: its full path, and its partition, which delete files must repeat."""

    url: str
    partition: tuple[Any, ...]
    encoded_partition: bytes


OnVector = Callable[[Target, DeletionVectorDescriptor], None]


def refuse_vector(target: Target, vector: DeletionVectorDescriptor) -> None:
    """Raise `Unsupported` for a deletion vector on a table that does not convert vectors."""
    raise Unsupported(
        f"File {target.url} has a deletion vector, which IcebergCompat does not allow. Set {DELETES_PROPERTY} = position to show "
        "vectors as Iceberg's position deletes; or run REORG TABLE … APPLY (PURGE) and disable delta.enableDeletionVectors.",
        code="DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_NOT_PURGED",
        file=target.url,
    )


def spec_of(schema: StructType, partition_columns: Sequence[str], spec_id: int = 0) -> Spec:
    """The partition spec of a table, with the codecs of its columns."""
    return Spec(
        spec_id,
        tuple(partition_fields(schema, partition_columns)),
        tuple(codec_of(schema.field(name).data_type) for name in partition_columns),
    )


class FileEncoder:
    """Encodes files of one schema as `DataFile`s; created once per conversion.

    Args:
        schema: the table's logical schema, with column mapping.
        partition_columns: logical names.
        file_url: returns the full path that readers open for an `AddFile.path`; raises for a path outside the table.
        on_vector: called for each file that has a deletion vector.
        format_version: 3 gives each file its first row id and its row commit version as data sequence number.
    """

    def __init__(
        self,
        schema: StructType,
        partition_columns: Sequence[str],
        file_url: Callable[[str], str],
        *,
        on_vector: OnVector = refuse_vector,
        format_version: int = 2,
    ) -> None:
        partition = [schema.field(name) for name in partition_columns]
        self._on_vector = on_vector
        self._has_lineage = format_version >= 3
        self._file_url = file_url
        self._partition = [_PartitionColumn(column, codec_of(column.data_type), {}) for column in partition]
        self._partition_names = [column.physical_name for column in partition]
        self._partitions: dict[tuple[str | None, ...], tuple[tuple[Any, ...], bytes]] = {}
        physical = set(self._partition_names)
        self._columns = _by_struct(
            (path, column) for path, column in primitive_columns(schema) if len(path) > 1 or path[0] not in physical
        )
        self._value_keys = [column.key for columns in self._columns.values() for column in columns]

    def encode_adds(self, adds: Iterable[AddFile]) -> Iterator[DataFile]:
        """Yield the entries of add actions."""
        for add in adds:
            stats = _parse(add.stats, add.path) if add.stats else None
            lineage = (add.base_row_id, add.default_row_commit_version)
            counts_nan = is_nan_counted(add.tags)
            yield self.encode(
                add.path, add.partition_values, add.size, stats, add.deletion_vector, lineage, counts_nan=counts_nan
            )

    def encode_table(self, files: pa.Table) -> Iterator[DataFile]:
        """Yield the entries of the rows of a files table, from those of the columns `FILES_COLUMNS` that it has."""
        for batch in files.select([name for name in FILES_COLUMNS if name in files.column_names]).to_batches(
            max_chunksize=10_000
        ):
            nothing: list[Any] = [None] * batch.num_rows
            filled = (name for name in batch.schema.names if batch.column(name).null_count < batch.num_rows)
            columns = {name: _values(batch.column(name)) for name in filled}
            rows = zip(*(columns.get(name, nothing) for name in FILES_COLUMNS), strict=True)
            for path, values, size, text, struct, tags, vector, base_row_id, commit_version in rows:
                stats = _parse(text, path) if text else struct
                descriptor = vector_of(vector)
                lineage, counts_nan = (base_row_id, commit_version), is_nan_counted(tags)
                yield self.encode(path, values or {}, size, stats, descriptor, lineage, counts_nan=counts_nan)

    def encode(
        self,
        path: str,
        partition_values: Mapping[str, str | None],
        size: int,
        stats: JsonMapping | None,
        vector: DeletionVectorDescriptor | None = None,
        lineage: tuple[int | None, int | None] = (None, None),
        *,
        counts_nan: bool = False,
    ) -> DataFile:
        """Encode one file.

        Args:
            partition_values: the log's strings by physical name.
            stats: the parsed statistics; values from JSON or as Python objects.
            lineage: the file's ``baseRowId`` and ``defaultRowCommitVersion``.
            counts_nan: whether its upper bounds for floats account for NaN (`tahoe.protocol.nan_bounds`); other files get no such bounds.

            Raises `CorruptTable` if the number of records, or in format version 3 a row id, is missing: IcebergCompat requires them.
        """
        record_count = stats.get("numRecords") if stats else None
        if stats is None or not _is_count(record_count):
            raise _without_statistics(path)
        url = self._file_url(path)
        values, partition = self._partition_of(partition_values, path)
        parts = [_HEAD, encode_string(url), _FORMAT, partition, encode_long(record_count), encode_long(size), _NONE]
        self._metrics(stats, record_count, parts, counts_nan)
        sequence_number = None
        if self._has_lineage:
            first_row_id, sequence_number = lineage
            if first_row_id is None or sequence_number is None:
                raise _without_row_ids(path)
            parts += [_SOME, encode_long(first_row_id), _NONE * 3]
        if vector is not None:
            self._on_vector(Target(url, values, partition), vector)
        return DataFile(url, b"".join(parts), values, record_count, size, sequence_number)

    def target(self, add: AddFile) -> Target:
        """Return the file in the form that delete files need."""
        return Target(self._file_url(add.path), *self._partition_of(add.partition_values, add.path))

    def _partition_of(self, partition_values: Mapping[str, str | None], path: str) -> tuple[tuple[Any, ...], bytes]:
        texts = tuple(map(partition_values.get, self._partition_names))
        encoded_partition = self._partitions.get(texts)
        if encoded_partition is None or None in texts:  # null, or there is no value at all, which is an error
            decoded = [column.tuple_value(partition_values, path) for column in self._partition]
            encoded_partition = tuple([value for value, _ in decoded]), b"".join([encoded for _, encoded in decoded])
            if len(self._partitions) < _KNOWN_PARTITIONS:
                self._partitions[texts] = encoded_partition
        return encoded_partition

    def _metrics(self, stats: JsonMapping, record_count: int, parts: list[bytes], counts_nan: bool) -> None:
        """Append value counts, null counts, no NaN counts, bounds; then the fields that stay empty."""
        if not self._value_keys:
            parts.append(_NONE * 5 + _UNUSED)
            return
        count = encode_long(record_count)
        nulls: list[bytes] = []
        lower: list[bytes] = []
        upper: list[bytes] = []
        for path, columns in self._columns.items():
            null_counts = _struct_at(stats.get("nullCount"), path)
            least = _struct_at(stats.get("minValues"), path)
            greatest = _struct_at(stats.get("maxValues"), path)
            for name, key, lower_bound, upper_bound, has_no_nan in columns:
                statistic = null_counts.get(name)
                if type(statistic) is int and statistic >= 0:
                    nulls.append(key + encode_long(statistic))
                statistic = least.get(name)
                if statistic is not None and (bound := lower_bound(statistic)) is not None:
                    lower.append(key + encode_bytes(bound))
                statistic = greatest.get(name)
                if statistic is not None and (has_no_nan or counts_nan) and (bound := upper_bound(statistic)) is not None:
                    upper.append(key + encode_bytes(bound))
        parts += [_SOME, encode_long(len(self._value_keys)), count.join(self._value_keys), count, _NONE]
        parts += [_map(nulls), _NONE, _map(lower), _map(upper), _UNUSED]


def partition_summaries(spec: Spec, partitions: Iterable[tuple[Any, ...]]) -> tuple[PartitionSummary, ...]:
    """Summarize each partition field over the files of one manifest."""
    distinct = set(partitions)
    return tuple(_summary(codec, {values[position] for values in distinct}) for position, codec in enumerate(spec.codecs))


def combine_summaries(spec: Spec, many: Sequence[tuple[PartitionSummary, ...]]) -> tuple[PartitionSummary, ...]:
    """Combine the summaries of several manifests. A deleted file may still be included: summaries may be too wide."""
    fields = []
    for position, codec in enumerate(spec.codecs):
        parts = [summaries[position] for summaries in many]
        nan = [part.contains_nan for part in parts if part.contains_nan is not None]
        lower = [part.lower_bound for part in parts if part.lower_bound is not None]
        upper = [part.upper_bound for part in parts if part.upper_bound is not None]
        fields.append(
            PartitionSummary(
                any(part.contains_null for part in parts),
                any(nan) if nan else None,
                min(lower, key=codec.order, default=None),
                max(upper, key=codec.order, default=None),
            )
        )
    return tuple(fields)


class _Column(NamedTuple):
    """One column with statistics: its physical name, its id as a map key, and its bound functions. `has_no_nan` is False for floats."""

    name: str
    key: bytes
    lower: Callable[[Any], bytes | None]
    upper: Callable[[Any], bytes | None]
    has_no_nan: bool


@dataclass(frozen=True, slots=True)
class _PartitionColumn:
    """One partition column; it has few distinct values, so each is decoded once."""

    column: StructField
    codec: Codec
    decoded: dict[str | None, tuple[Any, bytes]]

    def tuple_value(self, partition_values: Mapping[str, str | None], path: str) -> tuple[Any, bytes]:
        name = self.column.physical_name
        if name not in partition_values:
            raise CorruptTable(
                f"File {path} has no value for the partition column '{self.column.name}'. Repair its add action.",
                code="TAHOE_CORRUPT_PARTITION_VALUES",
                file=path,
                column=self.column.name,
            )
        text = partition_values[name]
        value = self.decoded.get(text)
        if value is None:
            value = self.decoded[text] = self._decode(text)
        return value

    def _decode(self, text: str | None) -> tuple[Any, bytes]:
        value = None if text == _HIVE_NULL else deserialize(text, self.column.data_type)
        if value is None:
            return None, _NONE
        decoded = self.codec.from_python(value)
        return decoded, _SOME + self.codec.encode(decoded)


def _by_struct(columns: Iterable[tuple[tuple[str, ...], StructField]]) -> dict[tuple[str, ...], list[_Column]]:
    """Group the columns by their struct, () for the table itself: statistics are nested in the same way."""
    grouped: dict[tuple[str, ...], list[_Column]] = {}
    for path, column in columns:
        grouped.setdefault(path[:-1], []).append(_column(column))
    return grouped


def _column(column: StructField) -> _Column:
    codec = codec_of(column.data_type)
    key = encode_long(column.field_id or 0)
    if is_collated(column):  # a collation orders differently from Iceberg, which compares bytes
        return _Column(column.physical_name, key, _no_bound, _no_bound, True)
    return _Column(column.physical_name, key, codec.lower, codec.upper, not is_float(column.data_type))


def _within_python(values: pa.Array) -> pa.Array:
    """Replace times before year 1 and after year 9999 by null: Python cannot represent them."""
    if pa.types.is_struct(values.type):
        parts = [_within_python(values.field(i)) for i in range(values.type.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(values.type), mask=pc.is_null(values))
    limits = _LIMITS.get(values.type.id)
    if limits is None:
        return values
    number = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
    raw = values.cast(number)
    inside = pc.and_(pc.greater_equal(raw, limits[0]), pc.less_equal(raw, limits[1]))
    return pc.if_else(inside, values, pa.scalar(None, values.type))


def _values(column: pa.Array) -> list[Any]:
    """Return the column's values as Python objects; maps as dictionaries, several times as fast as Arrow's lists of pairs."""
    if not pa.types.is_map(column.type) or column.null_count:
        values = _within_python(column).to_pylist()
        return [None if pairs is None else dict(pairs) for pairs in values] if pa.types.is_map(column.type) else values
    offsets = column.offsets.to_pylist()
    first, size = offsets[0], offsets[-1] - offsets[0]
    pairs = list(zip(column.keys.slice(first, size).to_pylist(), column.items.slice(first, size).to_pylist(), strict=True))
    return [dict(pairs[start - first : end - first]) for start, end in pairwise(offsets)]


def _struct_at(values: object, path: tuple[str, ...]) -> JsonMapping:
    for name in path:
        values = values.get(name) if isinstance(values, dict) else None
    return values if isinstance(values, dict) else {}


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _no_bound(value: object) -> bytes | None:
    return None


def _map(items: list[bytes]) -> bytes:
    if not items:
        return _NONE
    return b"".join((_SOME, encode_long(len(items)), *items, _NONE))


def _parse(text: str, path: str) -> Any:
    try:
        stats, end = _DECODER.raw_decode(text) if text[0] == "{" else (None, 0)
        if end < len(text):  # surrounding spaces, or invalid JSON
            stats = _DECODER.decode(text)
    except ValueError as error:
        raise CorruptTable(
            f"The statistics of file {path} are not valid JSON ({error}). Rewrite the file to give it new statistics.",
            code="TAHOE_CORRUPT_STATISTICS",
            file=path,
        ) from error
    return stats if isinstance(stats, dict) else None


def _summary(codec: Codec, values: set[Any]) -> PartitionSummary:
    contains_null = None in values
    values.discard(None)
    real = codec.iceberg_type in ("float", "double")
    ordered = [value for value in values if not real or value == value]
    contains_nan = len(ordered) < len(values) if real else None
    if not ordered:
        return PartitionSummary(contains_null, contains_nan, None, None)
    low, high = min(ordered), max(ordered)
    if real:  # zeros are spread outward: -0.0 < +0.0 in Iceberg, not in Python
        low, high = low or -0.0, high or 0.0
    return PartitionSummary(contains_null, contains_nan, codec.single(low), codec.single(high))


def _without_row_ids(path: str) -> CorruptTable:
    return CorruptTable(
        f"File {path} has no baseRowId and defaultRowCommitVersion, which IcebergCompatV3 requires of every file. Set "
        "delta.enableRowTracking = true again to assign them.",
        code="DELTA_ICEBERG_COMPAT_VIOLATION.FILES_NOT_ICEBERG_COMPAT",
        file=path,
    )


def _without_statistics(path: str) -> CorruptTable:
    return CorruptTable(
        f"File {path} has no number of records in its statistics, which Iceberg requires of every file. Recompute the "
        "statistics (Table.compute_statistics()), or rewrite the file with a writer that collects them.",
        code="DELTA_ICEBERG_COMPAT_VIOLATION.FILES_NOT_ICEBERG_COMPAT",
        file=path,
    )
