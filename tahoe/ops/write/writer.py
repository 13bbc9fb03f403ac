"""Arrow data → Parquet files of a table, and the `AddFile` values that bring them in. Nothing is committed here.

    data ─ cast to the table's schema, generated columns, constraints ─► split by partition ─► one Parquet file in memory each
        ─► put under an unused name ─► AddFile with statistics

Large files are encoded and put on threads of their own, while the rows that follow are made.
A table in memory is checked whole before the first file is written; of a stream, the files already written are deleted
again when a later batch does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from tahoe.clock import Clock
from tahoe.exceptions import InvalidRequest, SchemaMismatch, StorageFailure
from tahoe.lazy import pc, pq
from tahoe.ops.write.arrow_data import ArrowData, tables_of
from tahoe.ops.write.enforce import Enforcer
from tahoe.progress import Progress, silent
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import null_found, with_optional_generated
from tahoe.protocol.partition import hive_folder, serialize
from tahoe.protocol.statistics.collect import indexed_columns, statistics_of_table, string_prefix_length
from tahoe.schema.arrow import from_arrow_schema, to_arrow_schema, to_arrow_type
from tahoe.schema.arrow_values import scalar
from tahoe.schema.cast import FIELD_ID, CannotCast, conform, find_logical, nulls_where_forbidden, store_cast
from tahoe.schema.evolve import check_holds_data, check_writable, without_void
from tahoe.schema.mapping import nested_ids_of
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType
from tahoe.store.location import encode_path
from tahoe.store.log_store import LogStore

__all__ = ["CHANGE_DATA_FOLDER", "file_schema", "random_prefix", "tagged", "write_arrow"]

CHANGE_DATA_FOLDER = "_change_data"


MOST_BYTES_IN_MEMORY = 512 * 1024 * 1024
"""Of Arrow data that waits to be written; beyond it the largest partition is written, however few its rows."""
_BYTES_WORTH_A_THREAD = 4 * 1024 * 1024
_FILES_AT_ONCE = 1
"""So many files are on their way to storage while the next is made: more would need more memory."""
_SUFFIXES = {
    "snappy": ".snappy",
    "zstd": ".zstd",
    "gzip": ".gz",
    "lz4": ".lz4",
    "lz4_raw": ".lz4raw",
    "none": "",
    "uncompressed": "",
}
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def write_arrow(
    config: TableConfig,
    store: LogStore,
    data: ArrowData,
    clock: Clock,
    max_rows_per_file: int | None = None,
    compression: str | None = None,
    *,
    change_data: bool = False,
    bytes_per_file: int = MOST_BYTES_IN_MEMORY,
    progress: Progress = silent,
) -> list[AddFile]:
    """Write rows as data files of the table and return the actions that add them, in the order of writing.

    Args:
        config: protocol, schema and properties that the files must obey: those of the commit to come.
        data: rows; columns are matched by name without regard to case, missing ones become null or are generated.
        max_rows_per_file: more rows go to further files; None for one file a partition, as far as memory allows.
        compression: ``snappy``, ``zstd``, ``gzip``, ``lz4_raw`` or ``none``; None for the table's
            ``delta.parquet.compression.codec``, or snappy.
        change_data: the files are change data files: named and placed as these.
        bytes_per_file: of a stream, when so many bytes in memory wait for a partition, they become a file; the file is a good
            deal smaller.
        progress: told of the rows written.

    Raises:
        SchemaMismatch: columns or types that do not fit, or values that do not fit their column's type.
        InvariantViolation: rows break NOT NULL, CHECK, an invariant or a generated column's expression; the message names them.
        Unsupported: a constraint that this version of Tahoe cannot enforce, naming the part of its expression.
        InvalidRequest: text that is no UTF-8; a constraint that cannot be computed for a row.
        StorageFailure: from the store; the files written before are deleted as far as storage lets us.
    """
    if max_rows_per_file is not None and max_rows_per_file < 1:
        raise InvalidRequest(f"max_rows_per_file must be 1 or more, found {max_rows_per_file}.", code="DELTA_ILLEGAL_OPTION")
    tables, data_schema = tables_of(data, config.schema)
    check_holds_data(config.schema)
    if data_schema != to_arrow_schema(config.schema):
        check_writable(from_arrow_schema(data_schema), with_optional_generated(config.schema))
    layout = _Layout.of(config)
    # Change data repeats rows of the table; what was demanded of them was checked where they came in.
    enforcer = None if change_data else Enforcer.of(config, data_schema)
    fitted = layout.conformed if enforcer is None else lambda table: enforcer.checked(table, layout.conformed)
    writer = _Writer(config, layout, store, clock, _codec(compression, config), change_data)
    try:
        told = _RowsTold(progress, data.num_rows if isinstance(data, pa.Table) else None)
        for partition, rows in _files_of(layout, (fitted(table) for table in tables), max_rows_per_file, bytes_per_file):
            writer.write(partition, rows)
            told.more(rows.num_rows)
            del rows  # once it is in storage, nothing shall keep it while the next file's rows come
        return writer.added()
    except BaseException:
        writer.delete_written()
        raise


def tagged(config: TableConfig, add: AddFile) -> AddFile:
    """The file with the tag by which later upgrades of IcebergCompat know that it fulfils that version."""
    version = config.iceberg_compat_version
    if version is None or version < 2:
        return add
    return replace(add, tags={**(add.tags or {}), "ICEBERG_COMPAT_VERSION": str(version)})


def random_prefix(clock: Clock, length: int) -> str:
    """The name of a folder for tables with random file prefixes."""
    return "".join(_LETTERS[int(clock.random() * len(_LETTERS))] for _ in range(length))


def file_schema(config: TableConfig) -> pa.Schema:
    """The Arrow schema of new data files: physical names, field ids where columns are mapped, no void columns; partition columns
    at the end or, unless the table materialises them, left out."""
    layout = _Layout.of(config)
    return pa.schema([layout.schema.field(name) for name in layout.file_columns])


_Partition = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class _Layout:
    """What a table's new files look like.

    Args:
        columns: logical fields that are stored, data columns first, void left out at every depth.
        schema: their Arrow schema under physical names.
        partition: those of `columns` that partition the table.
        file_columns: physical names of the columns that go into data files.
        table: the table's URL, for messages.
    """

    columns: tuple[StructField, ...]
    schema: pa.Schema
    partition: tuple[StructField, ...]
    file_columns: list[str]
    table: str

    @classmethod
    def of(cls, config: TableConfig) -> _Layout:
        data_columns = without_void(config.data_schema).fields
        partition = config.partition_schema.fields
        with_ids = config.column_mapping_mode != "none"
        columns = (*data_columns, *partition)
        stored = columns if config.materializes_partition_columns else data_columns
        return cls(
            columns,
            pa.schema([_physical_field(column, with_ids) for column in columns]),
            partition,
            [column.physical_name for column in stored],
            config.table,
        )

    def conformed(self, table: pa.Table) -> pa.Table:
        """The rows in this layout; raises for values that do not fit or must not be null."""
        source = pa.struct(table.schema)
        arrays = []
        for column, target in zip(self.columns, self.schema, strict=True):
            position = find_logical(source, column)
            if position is None:
                arrays.append(pa.nulls(table.num_rows, target.type))
                continue
            chunks = [self._values(chunk, column, target.type) for chunk in table.column(position).chunks]
            arrays.append(chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks, target.type))
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _values(self, values: pa.Array, column: StructField, target: pa.DataType) -> pa.Array:
        try:
            stored = conform(values, column.data_type, target, find_logical, store_cast, (column.name,))
            stored.validate(full=True)
        except CannotCast as error:
            raise _does_not_fit(error, column, self.table) from error
        except pa.ArrowInvalid as error:
            raise InvalidRequest(
                f"The data of column '{column.name}' for table {self.table} is not valid: {error}. "
                "Correct it before it is written.",
                code="TAHOE_INVALID_DATA",
                column=column.name,
            ) from error
        if column in self.partition and stored.null_count < len(stored):
            stored = _empty_as_null(stored)
        forbidden: tuple[str, ...] | None = (column.name,) if stored.null_count and not column.nullable else None
        if forbidden is None and pa.types.is_nested(target):
            forbidden = next(nulls_where_forbidden(stored, column.data_type, (column.name,)), None)
        if forbidden is not None:
            raise null_found(forbidden, self.table)
        return stored

    def partitions_of(self, table: pa.Table) -> Iterator[tuple[_Partition, pa.Table]]:
        """The rows of each partition, with its values as the log writes them; rows keep their order."""
        if not self.partition:
            yield (), table
            return
        codes = _codes([table.column(column.physical_name).combine_chunks() for column in self.partition])
        if len(codes.unique()) > 1:
            order = pc.sort_indices(codes)  # stable
            table, codes = table.take(order), codes.take(order)
        start = 0
        for end in pc.run_end_encode(codes).run_ends.to_pylist():
            rows = table.slice(start, end - start)
            first = [rows.column(column.physical_name)[0].as_py() for column in self.partition]
            yield tuple(serialize(v, c.data_type) for v, c in zip(first, self.partition, strict=True)), rows
            start = end


class _RowsTold:
    """Tells how many rows went into files, beginning with none."""

    def __init__(self, progress: Progress, total: int | None) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self.more(0)

    def more(self, rows: int) -> None:
        self._done += rows
        self._progress("rows written", self._done, self._total)


class _Writer:
    """Puts files into the store and remembers them."""

    def __init__(
        self, config: TableConfig, layout: _Layout, store: LogStore, clock: Clock, codec: str, change_data: bool
    ) -> None:
        self._files: list[Future[AddFile]] = []
        self._threads: ThreadPoolExecutor | None = None
        self._names: list[str] = []
        self._config = config
        self._layout = layout
        self._store = store
        self._clock = clock
        self._codec = codec
        self._folder, self._kind = (f"{CHANGE_DATA_FOLDER}/", "cdc") if change_data else ("", "part")
        configuration = config.metadata.configuration
        self._indexed = indexed_columns(config.schema, config.partition_columns, configuration)
        self._prefix_length = string_prefix_length(configuration)

    def write(self, partition: _Partition, rows: pa.Table) -> None:
        """Put a file, or have it put soon; an error may then be raised by a later call."""
        values = {c.physical_name: value for c, value in zip(self._layout.partition, partition, strict=True)}
        name = self._new_name(values)
        # Remembered before the bytes go out: an answer that is lost may have left a file.
        self._names.append(name)
        if rows.nbytes < _BYTES_WORTH_A_THREAD:
            done: Future[AddFile] = Future()
            done.set_result(self._put(name, values, rows, self._clock.now_ms()))
            self._files.append(done)
            return
        self._threads = self._threads or ThreadPoolExecutor(_FILES_AT_ONCE)
        if len(self._files) >= _FILES_AT_ONCE:
            self._files[-_FILES_AT_ONCE].result()
        self._files.append(self._threads.submit(self._put, name, values, rows, self._clock.now_ms()))

    def added(self) -> list[AddFile]:
        """The files, in the order of writing, when all of them are in storage."""
        adds = [file.result() for file in self._files]
        self._stop()
        return adds

    def delete_written(self) -> None:
        """Take back what was written, after an error that will be raised; files that storage keeps are left for VACUUM."""
        self._stop()
        for name in self._names:
            with suppress(StorageFailure):
                self._store.delete(name)

    def _stop(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _put(self, name: str, values: Mapping[str, str | None], rows: pa.Table, now_ms: int) -> AddFile:
        stored = rows.select(self._layout.file_columns)
        content = _parquet(stored, self._codec, self._config.properties.get("delta.parquet.format.version"))
        self._store.put(name, content)
        size = len(content)
        del content
        # Arrow keeps what it no longer uses for later: beside the next file that would be the memory of another one.
        pa.default_memory_pool().release_unused()
        statistics = statistics_of_table(stored, self._config.schema, self._indexed, prefix_length=self._prefix_length)
        return AddFile(
            path=encode_path(name),
            partition_values=values,
            size=size,
            modification_time=now_ms,
            data_change=True,
            stats=statistics.to_json(),
        )

    def _new_name(self, values: Mapping[str, str | None]) -> str:
        """As the reference names files, ``part-00000-<uuid>-c000.snappy.parquet``, with ``.c000`` in partitioned tables."""
        separator = "." if values else "-"
        name = f"{self._kind}-{len(self._names):05d}-{self._clock.uuid()}{separator}c000{_SUFFIXES[self._codec]}.parquet"
        if self._config.random_prefixes:
            length = int(self._config.properties.get("delta.randomPrefixLength"))
            return f"{self._folder}{random_prefix(self._clock, length)}/{name}"
        return f"{self._folder}{hive_folder(list(values), values)}/{name}" if values else f"{self._folder}{name}"


def _files_of(
    layout: _Layout, tables: Iterable[pa.Table], max_rows: int | None, most_bytes: int
) -> Iterator[tuple[_Partition, pa.Table]]:
    """The rows of each file to be written, partition by partition, within bounded memory."""
    waiting: dict[_Partition, list[pa.Table]] = {}
    bytes_of: dict[_Partition, int] = {}
    for number, table in enumerate(tables):
        for partition, rows in layout.partitions_of(table) if table.num_rows else ():
            waiting.setdefault(partition, []).append(rows)
            if max_rows is not None:
                full, rest = _cut(pa.concat_tables(waiting.pop(partition)), max_rows)
                yield from ((partition, part) for part in full)
                if rest.num_rows:
                    waiting[partition] = [rest]
            bytes_of[partition] = sum(part.nbytes for part in waiting.get(partition, ())) if number else 0
            if bytes_of[partition] >= most_bytes:
                del bytes_of[partition]
                yield partition, pa.concat_tables(waiting.pop(partition))
        while sum(bytes_of.values()) > MOST_BYTES_IN_MEMORY:
            largest = max(bytes_of, key=lambda key: bytes_of[key])
            del bytes_of[largest]
            yield largest, pa.concat_tables(waiting.pop(largest))
    for partition, parts in waiting.items():
        yield partition, pa.concat_tables(parts)


def _cut(table: pa.Table, max_rows: int) -> tuple[list[pa.Table], pa.Table]:
    """Slices of exactly `max_rows`, and what is left."""
    whole = table.num_rows // max_rows
    return [table.slice(i * max_rows, max_rows) for i in range(whole)], table.slice(whole * max_rows)


def _codes(columns: list[pa.Array]) -> pa.Array:
    """One number a row, equal where all partition values are."""
    codes: pa.Array | None = None
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        indices = encoded.indices.cast(pa.int64())
        # Numbers are made small again after each column, so that the product of the columns' sizes cannot overflow.
        codes = (
            indices
            if codes is None
            else pc.dictionary_encode(pc.add(pc.multiply(codes, len(encoded.dictionary)), indices)).indices.cast(pa.int64())
        )
    assert codes is not None
    return codes


def _empty_as_null(values: pa.Array) -> pa.Array:
    """The log cannot tell an empty partition value from null, so it becomes null before NOT NULL is checked."""
    if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        return values
    return pc.if_else(pc.equal(pc.binary_length(values), scalar(0)), scalar(None, values.type), values)


_ROWS_LOOKED_AT = 4096
"""At the middle of a column, and as many spread over all of it."""


def _columns_worth_a_dictionary(table: pa.Table) -> list[str]:
    """Every leaf column, as Parquet writes its path, but those that hold next to nothing twice.

    For these Parquet would make a dictionary until it is too large and then write them plain: a third of the whole work, for nothing.
    """
    leaves = [leaf for name, column in zip(table.column_names, table.columns, strict=True) for leaf in _leaves(name, column)]
    return [path for path, values in leaves if not _seldom_repeats(values)]


def _seldom_repeats(values: pa.ChunkedArray) -> bool:
    count = len(values)
    if count < 16 * _ROWS_LOOKED_AT or pa.types.is_boolean(values.type) or pa.types.is_null(values.type):
        return False
    middle = values.slice(count // 2, _ROWS_LOOKED_AT)
    if len(middle.unique()) < 0.995 * _ROWS_LOOKED_AT:
        return False
    spread = pa.arange(0, count, count // _ROWS_LOOKED_AT)
    return len(values.take(spread).unique()) >= 0.995 * len(spread)


def _parquet(table: pa.Table, codec: str, format_version: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        use_dictionary=_columns_worth_a_dictionary(table),
        compression="none" if codec == "uncompressed" else codec,
        data_page_version="2.0" if format_version.startswith("2.") else "1.0",
        # Readers take types from the Delta schema; Arrow's copy of its own would only make the file larger.
        store_schema=False,
        store_decimal_as_integer=True,
        write_statistics=_columns_with_honest_bounds(table),
    ) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _columns_with_honest_bounds(table: pa.Table) -> bool | list[str]:
    """Every leaf column, as Parquet writes its path, but those that hold NaN; True for all.

    Arrow leaves NaN out of Parquet's bounds, and Spark, for which NaN is the greatest number, would skip rows by them.
    """
    leaves = [leaf for name, column in zip(table.column_names, table.columns, strict=True) for leaf in _leaves(name, column)]
    honest = [path for path, values in leaves if not _has_nan(values)]
    return True if len(honest) == len(leaves) else honest


def _leaves(path: str, values: pa.ChunkedArray) -> Iterator[tuple[str, pa.ChunkedArray]]:
    data_type = values.type
    if pa.types.is_struct(data_type):
        for index in range(data_type.num_fields):
            yield from _leaves(f"{path}.{data_type.field(index).name}", pc.struct_field(values, index))
    elif pa.types.is_list(data_type):
        yield from _leaves(f"{path}.list.element", pc.list_flatten(values))
    elif pa.types.is_map(data_type):
        chunks = values.chunks
        for name, part, kind in (("key", "keys", data_type.key_type), ("value", "items", data_type.item_type)):
            flat = pa.chunked_array([getattr(chunk, part) for chunk in chunks], kind)
            yield from _leaves(f"{path}.key_value.{name}", flat)
    else:
        yield path, values


def _has_nan(values: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py() is True


def _codec(compression: str | None, config: TableConfig) -> str:
    codec = (compression or config.properties.parquet_compression_codec or "snappy").lower()
    if codec not in _SUFFIXES:
        raise InvalidRequest(
            f"There is no compression '{codec}' for data files; use one of {', '.join(_SUFFIXES)}.",
            code="DELTA_ILLEGAL_OPTION",
            compression=codec,
        )
    return codec


def _physical_field(column: StructField, with_ids: bool) -> pa.Field:
    nested = nested_ids_of(column) if with_ids else {}
    metadata = {FIELD_ID: str(column.field_id)} if with_ids and column.field_id is not None else None
    data_type = _physical_type(column.data_type, column.physical_name, nested, with_ids)
    return pa.field(column.physical_name, data_type, column.nullable, metadata)


def _physical_type(data_type: DataType, path: str, nested: Mapping[str, int], with_ids: bool) -> pa.DataType:
    """The Arrow type under physical names; `path` and `nested` give the ids of elements, keys and values."""

    def part(name: str, inner: DataType, nullable: bool) -> pa.Field:
        key = f"{path}.{name}"
        metadata = {FIELD_ID: str(nested[key])} if key in nested else None
        return pa.field(name, _physical_type(inner, key, nested, with_ids), nullable, metadata)

    match data_type:
        case StructType(fields):
            return pa.struct([_physical_field(column, with_ids) for column in fields])
        case ArrayType(element, contains_null):
            return pa.list_(part("element", element, contains_null))
        case MapType(key, value, value_contains_null):
            return pa.map_(part("key", key, False), part("value", value, value_contains_null))
    return to_arrow_type(data_type)


def _does_not_fit(error: CannotCast, column: StructField, table: str) -> SchemaMismatch:
    name = ".".join(error.path)
    return SchemaMismatch(
        f"Values of column '{name}' ({error.source}) do not fit table {table}, where the column's type is {error.target}"
        f"{f': {error.reason}' if error.reason else ''}. Correct the values or cast the column; nothing was committed.",
        code="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        table=table,
        column=name,
    )
