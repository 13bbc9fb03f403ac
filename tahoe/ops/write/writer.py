"""Arrow data → Parquet files of a table, and the `AddFile` actions that add them. Nothing is committed here.

    data ─ cast to the table's schema, generated columns, constraints ─► split by partition ─► one Parquet file in memory each
        ─► put under an unused name ─► AddFile with statistics

Large files are encoded and stored on their own threads while the next rows are computed.
A table in memory is checked completely before the first file is written; for a stream, the files already written are deleted
if a later batch is invalid.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.exceptions import InvalidRequest, StorageFailure
from tahoe.base.progress import Progress, silent
from tahoe.ops.write.arrow_data import ArrowData, tables_of
from tahoe.ops.write.completion import Completion, Defaults, TaskCompletion, refuse_incomplete
from tahoe.ops.write.enforce import Enforcer, LimitedTexts
from tahoe.ops.write.parquet_files import ParquetFormat, encode_file
from tahoe.ops.write.stored_layout import Layout, Partition
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import with_optional_generated
from tahoe.protocol.nan_bounds import with_statistics
from tahoe.protocol.partition import partition_folder
from tahoe.protocol.statistics.collect import StatisticsCollector, indexed_columns, string_prefix_length
from tahoe.protocol.statistics.parquet_join import Bytes
from tahoe.schema.arrow import from_arrow_schema, to_arrow_schema
from tahoe.schema.evolve import check_holds_data, check_writable
from tahoe.store.location import encode_path
from tahoe.store.log_store import LogStore

CHANGE_DATA_FOLDER = "_change_data"


MOST_BYTES_IN_MEMORY = 512 * 1024 * 1024
"""The maximum bytes of buffered Arrow data; beyond it the largest partition is written, however few its rows."""
_BYTES_WORTH_A_THREAD = 4 * 1024 * 1024
_BYTES_AT_ONCE = 32 * 1024 * 1024
"""The bytes of rows that are encoded and stored while the next file's are computed: a larger file is alone, and its row groups are encoded
in parallel."""
_BYTES_WORTH_RELEASING = 2 * _BYTES_AT_ONCE
"""Freed memory of smaller files is reused for the next ones: the system clears each page that it returns."""
_FILES_AT_ONCE = os.cpu_count() or 1
_SMALL_FILES_AT_ONCE = 20
"""The same for files that are not worth a thread, in an object store: there each takes as long as its request."""
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """Options of `write_arrow`.

    Args:
        max_rows_per_file: more rows go to further files; None for one file per partition, as far as memory allows.
        compression: ``snappy``, ``zstd``, ``gzip``, ``lz4_raw`` or ``none``; None for the table's
            ``delta.parquet.compression.codec``, or snappy.
        change_data: the files are change data files, with their names and folder.
        bytes_per_file: for a stream, the buffered bytes of a partition that become a file; the file is considerably smaller.
        progress: receives the number of rows written.
        completion: supplies the values of identity columns; without it the data has them all.
        copied: the rows are the table's own, unchanged.
        time_zone: in which the table's expressions read the wall clock of a timestamp.
    """

    max_rows_per_file: int | None = None
    compression: str | None = None
    change_data: bool = False
    bytes_per_file: int = MOST_BYTES_IN_MEMORY
    progress: Progress = silent
    completion: Completion | Defaults | TaskCompletion | None = None
    copied: bool = False
    time_zone: str = "UTC"


def write_arrow(
    config: TableConfig, store: LogStore, data: ArrowData, clock: Clock, options: WriterOptions | None = None
) -> list[AddFile]:
    """Write rows as data files of the table and return the actions that add them, in the order of writing.

    Args:
        config: protocol, schema and properties that apply to the files: those of the coming commit.
        data: rows; columns are matched by name without regard to case, missing ones become null or are generated.

    Raises:
        SchemaMismatch: columns or types that do not fit, or values that do not fit their column's type.
        InvariantViolation: rows break NOT NULL, CHECK, an invariant or a generated column's expression; the message names them.
        Unsupported: a constraint that this version of Tahoe cannot enforce, naming the part of its expression.
        InvalidRequest: text that is not UTF-8; a constraint that cannot be computed for a row.
        StorageFailure: from the store; the files already written are deleted as far as storage allows.
    """
    options = options or WriterOptions()
    most = options.max_rows_per_file
    if most is not None and most < 1:
        raise InvalidRequest(f"max_rows_per_file must be 1 or more, found {most}.", code="DELTA_ILLEGAL_OPTION")
    tables, data_schema = tables_of(data, config.schema)
    check_holds_data(config.schema)
    if data_schema != to_arrow_schema(config.schema):
        check_writable(from_arrow_schema(data_schema), with_optional_generated(config.schema))
    layout = Layout.of(config)
    if options.completion is None:
        refuse_incomplete(config, data_schema.names, "This write", "Give the rows that column.")
    # Early, so that an unenforceable constraint raises before anything is written.
    fitted = _change_data_of(config, layout) if options.change_data else _checked(config, data_schema, layout, options)
    writer = _Writer(config, layout, store, clock, options)
    try:
        reporter = _RowReporter(options.progress, data.num_rows if isinstance(data, pa.Table) else None)
        for partition, rows in _files_of(layout, (fitted(table) for table in tables), most, options.bytes_per_file):
            writer.write(partition, rows)
            reporter.more(rows.num_rows)
            del rows  # frees the rows once they are in storage, before the next file's rows come
        return writer.added()
    except BaseException:
        writer.delete_written()
        raise


def tagged(config: TableConfig, add: AddFile) -> AddFile:
    """Return the file with the tag that marks it as compatible for later upgrades of IcebergCompat."""
    version = config.iceberg_compat_version
    if version is None or version < 2:
        return add
    return replace(add, tags={**(add.tags or {}), "ICEBERG_COMPAT_VERSION": str(version)})


def random_prefix(clock: Clock, length: int) -> str:
    """Return a random folder name for tables with random file prefixes."""
    return "".join(_LETTERS[int(clock.random() * len(_LETTERS))] for _ in range(length))


class _RowReporter:
    """Reports the number of rows written to files, beginning with none."""

    def __init__(self, progress: Progress, total: int | None) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self.more(0)

    def more(self, rows: int) -> None:
        self._done += rows
        self._progress("rows written", self._done, self._total)


def _checked(config: TableConfig, schema: pa.Schema, layout: Layout, options: WriterOptions) -> Callable[[pa.Table], pa.Table]:
    enforcer = Enforcer.of(config, schema, options.completion, copied=options.copied, time_zone=options.time_zone)
    conformed = partial(layout.conformed, are_valid=options.copied)
    return lambda table: enforcer.checked(table, conformed)


def _change_data_of(config: TableConfig, layout: Layout) -> Callable[[pa.Table], pa.Table]:
    """Return a conversion without checks: change data repeats rows that were checked when they were written to the table."""
    limited = LimitedTexts(config.schema, config.table, refuses=False)
    return lambda table: limited(layout.conformed(table))


class _Writer:
    """Writes files to the store and records them."""

    def __init__(self, config: TableConfig, layout: Layout, store: LogStore, clock: Clock, options: WriterOptions) -> None:
        self._files: list[Future[AddFile]] = []
        self._waiting: deque[tuple[Future[AddFile], int]] = deque()
        self._threads: ThreadPoolExecutor | None = None
        self._names: list[str] = []
        self._config = config
        self._layout = layout
        self._store = store
        self._clock = clock
        self._format = ParquetFormat.of(config, options.compression, with_bloom_filters=not options.change_data)
        self._folder, self._kind = (f"{CHANGE_DATA_FOLDER}/", "cdc") if options.change_data else ("", "part")
        configuration = config.metadata.configuration
        self._indexed = indexed_columns(config.schema, config.partition_columns, configuration)
        self._prefix_length = string_prefix_length(configuration)

    def write(self, partition: Partition, rows: pa.Table) -> None:
        """Write a file, perhaps in the background; then an error may be raised by a later call."""
        values = {c.physical_name: value for c, value in zip(self._layout.partition, partition, strict=True)}
        name = self._new_name(values)
        # Recorded before the upload: a lost response may have left a file.
        self._names.append(name)
        is_small = rows.nbytes < _BYTES_WORTH_A_THREAD
        if is_small and self._store.asks_cheaply:
            done: Future[AddFile] = Future()
            done.set_result(self._put(name, values, rows, self._clock.now_ms()))
            self._files.append(done)
            return
        self._threads = self._threads or ThreadPoolExecutor(_SMALL_FILES_AT_ONCE)
        self._make_room(rows.nbytes, _SMALL_FILES_AT_ONCE if is_small else _FILES_AT_ONCE)
        self._files.append(self._threads.submit(self._put, name, values, rows, self._clock.now_ms()))
        self._waiting.append((self._files[-1], rows.nbytes))

    def _make_room(self, size: int, files_at_once: int) -> None:
        """Wait, oldest file first, until another file of this size may be in progress."""
        while self._waiting and (
            len(self._waiting) >= files_at_once or size + sum(more for _, more in self._waiting) > _BYTES_AT_ONCE
        ):
            file, _ = self._waiting.popleft()
            file.result()

    def added(self) -> list[AddFile]:
        """Return the files, in the order of writing, once all of them are in storage."""
        adds = [file.result() for file in self._files]
        self._stop()
        return adds

    def delete_written(self) -> None:
        """Delete the written files, after an error that will be raised; files that cannot be deleted are left for VACUUM."""
        self._stop()
        for name in self._names:
            with suppress(StorageFailure):
                self._store.delete(name)

    def _stop(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _put(self, name: str, values: Mapping[str, str | None], rows: pa.Table, now_ms: int) -> AddFile:
        stored = rows.select(self._layout.file_columns)
        collected = StatisticsCollector(self._indexed, self._prefix_length, texts_by_footer=True)
        encode = partial(encode_file, stored, self._format, collected)
        if self._store.asks_cheaply and rows.nbytes >= _BYTES_WORTH_A_THREAD:
            # Row groups are written while others are encoded.
            with self._store.open_output(name) as file:
                statistics, size = encode(file.write), file.tell()
        else:
            parts = list[Bytes]()
            statistics = encode(parts.append)
            content = b"".join(parts)
            size = len(content)
            self._store.put(name, content)
            del content, parts
        if rows.nbytes >= _BYTES_WORTH_RELEASING:
            # Arrow's allocator retains freed memory: beside the next file that would amount to the memory of another one.
            pa.default_memory_pool().release_unused()
        add = AddFile(encode_path(name), values, size, modification_time=now_ms, data_change=True)
        return with_statistics(add, statistics, self._indexed)

    def _new_name(self, values: Mapping[str, str | None]) -> str:
        name = file_name(self._config, self._clock, values, f"{self._kind}-{len(self._names):05d}", self._format.suffix)
        return f"{self._folder}{name}"


def file_name(config: TableConfig, clock: Clock, values: Mapping[str, str | None], begin: str, suffix: str) -> str:
    """Return a file name like the reference's, ``part-00000-<uuid>-c000.snappy.parquet``, with ``.c000`` in partitioned tables."""
    name = f"{begin}-{clock.uuid()}{'.' if values else '-'}c000{suffix}.parquet"
    if config.random_prefixes:
        return f"{random_prefix(clock, int(config.properties.get('delta.randomPrefixLength')))}/{name}"
    return f"{partition_folder(list(values), values)}/{name}" if values else name


def _files_of(
    layout: Layout, tables: Iterable[pa.Table], max_rows: int | None, most_bytes: int
) -> Iterator[tuple[Partition, pa.Table]]:
    """Yield the rows of each file to be written, partition by partition, within bounded memory."""
    waiting: dict[Partition, list[pa.Table]] = {}
    bytes_of: dict[Partition, int] = {}
    for number, table in enumerate(tables):
        for partition, rows in layout.partitions_of(table) if table.num_rows else ():
            waiting.setdefault(partition, []).append(rows)
            bytes_of[partition] = bytes_of.get(partition, 0) + rows.nbytes
            if max_rows is not None:
                full, rest = _cut(pa.concat_tables(waiting.pop(partition)), max_rows)
                yield from ((partition, part) for part in full)
                bytes_of[partition] = rest.nbytes
                if rest.num_rows:
                    waiting[partition] = [rest]
            # The first table is in memory anyway.
            if number and bytes_of[partition] >= most_bytes:
                del bytes_of[partition]
                yield partition, pa.concat_tables(waiting.pop(partition))
        while number and sum(bytes_of.values()) > MOST_BYTES_IN_MEMORY:
            largest = max(bytes_of, key=lambda key: bytes_of[key])
            del bytes_of[largest]
            yield largest, pa.concat_tables(waiting.pop(largest))
    for partition, parts in waiting.items():
        yield partition, pa.concat_tables(parts)


def _cut(table: pa.Table, max_rows: int) -> tuple[list[pa.Table], pa.Table]:
    """Split a table into slices of exactly `max_rows`, and the remainder."""
    whole = table.num_rows // max_rows
    return [table.slice(i * max_rows, max_rows) for i in range(whole)], table.slice(whole * max_rows)
