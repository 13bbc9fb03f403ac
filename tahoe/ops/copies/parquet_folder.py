"""Read the Parquet files of a folder as the content of a Delta table: files, columns, partition values and statistics.

    listing, or the log of a stream ─► names ─► partition values       footers, concurrently ─► merged schema, statistics of each file

Only footers are read. Hidden files and folders (``_…``, ``.…``) are ignored, except partition folders (``_column=value``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound
from tahoe.base.lazy import pq
from tahoe.base.progress import Progress, silent, tracked, tracked_listing
from tahoe.ops.copies.footer_schema import footer_schema, merged
from tahoe.ops.copies.hive_paths import PartitionReader
from tahoe.protocol.actions import AddFile
from tahoe.protocol.features import Feature
from tahoe.protocol.nan_bounds import has_greatest_float, with_stats_text
from tahoe.protocol.properties import FEATURE_PREFIX
from tahoe.protocol.statistics.collect import indexed_columns, statistics_of_footer, string_prefix_length
from tahoe.schema.evolve import as_nullable
from tahoe.schema.types import StructType
from tahoe.schema.walk import all_fields, primitives
from tahoe.store.location import encode_path
from tahoe.store.log_store import Entry, LogStore
from tahoe.store.side_by_side import both

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData


_Seen = TypeVar("_Seen")

_THREADS = 16
_REQUESTS_AT_ONCE = 64
_STREAM_LOG = "_spark_metadata"


@dataclass(frozen=True, slots=True)
class ConvertibleTable:
    """Existing files that can become a table.

    Args:
        schema: the logical schema with the partition columns, all nullable.
        partition_by: the partition columns, in the order of the folders.
        files: the files, with paths relative to `url`; deleted rows as inline deletion vectors.
        url: the URL of the folder.
        source_format: ``parquet`` or ``iceberg``.
        properties: properties that the table must have.
    """

    schema: StructType
    partition_by: tuple[str, ...]
    files: Sequence[AddFile]
    url: str
    source_format: str = "parquet"
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FolderRequest:
    """The options for reading a folder.

    Args:
        partition_schema: the partition columns in the folder names, in order.
        statistics: whether to collect statistics of each file.
        schema: the schema in a catalog, used instead of those in the footers.
        folders: the partition folders in a catalog; others are ignored. None for all folders.
        time_zone: the zone of timestamps in folder names.
        bad_values_are_null: see `tahoe.ops.copies.hive_paths.PartitionReader`.
        use_stream_log: if Structured Streaming wrote the folder, use only the files in its log.
        configuration: the properties of the new table, which select the columns with statistics.
    """

    partition_schema: StructType = field(default_factory=lambda: StructType(()))
    statistics: bool = True
    schema: StructType | None = None
    folders: Collection[str] | None = None
    time_zone: str = "UTC"
    bad_values_are_null: bool = False
    use_stream_log: bool = True
    configuration: Mapping[str, str] = field(default_factory=dict)


def parquet_table(store: LogStore, request: FolderRequest, progress: Progress = silent) -> ConvertibleTable:
    """Read the Parquet files of a folder as the content of a Delta table.

    Args:
        store: the store of the folder.
        progress: called with the numbers of files listed and footers read.

    Raises:
        NotFound: ``DELTA_EMPTY_DIRECTORY``: there is no file.
        InvalidRequest: see `PartitionReader.values` and `tahoe.ops.copies.footer_schema.merged`; ``DELTA_FAILED_INFER_SCHEMA``.
        CorruptTable: ``DELTA_FAILED_READ_FILE_FOOTER``: a file is not a Parquet file.
    """
    entries = _entries(store, request, progress)
    if not entries:
        raise NotFound(
            f"No file found in the directory: {store.url}. Name the folder of the Parquet files; hidden ones, whose names begin with '_' or "
            "'.', do not count.",
            code="DELTA_EMPTY_DIRECTORY",
            table=store.url,
        )
    reader = PartitionReader(
        request.partition_schema, store.url, request.time_zone, bad_values_are_null=request.bad_values_are_null
    )
    files = [
        AddFile(encode_path(entry.name), reader.values(entry.name), entry.size, entry.modified_ms, True) for entry in entries
    ]
    schema = request.schema
    if schema is None or request.statistics:
        schema, statistics = _footers(store, entries, request, progress)
        if request.statistics:
            files = [
                with_stats_text(file, text, nan_counted=counted) for file, (text, counted) in zip(files, statistics, strict=True)
            ]
    table_schema = _with_partition_columns(schema, request.partition_schema)
    names = tuple(request.partition_schema.names)
    return ConvertibleTable(table_schema, names, files, store.url, properties=_properties(table_schema))


def _properties(schema: StructType) -> dict[str, str]:
    """Return the feature property for shredded variants, which PySpark writes by default and only tables with the feature may have."""
    has_variants = any(part.name == "variant" for column in all_fields(schema) for part in primitives(column.data_type))
    return {f"{FEATURE_PREFIX}{Feature.VARIANT_SHREDDING}": "supported"} if has_variants else {}


# -- the files -------------------------------------------------------------------------------------------------------------


def _entries(store: LogStore, request: FolderRequest, progress: Progress) -> list[Entry]:
    """Return the files, sorted by name."""

    def visible() -> list[Entry]:
        return [entry for entry in tracked_listing(store.walk(), progress) if not _is_hidden(entry.name)]

    if not request.use_stream_log:
        entries = visible()
    elif store.asks_cheaply:
        of_stream = _of_stream(store)
        entries = visible() if of_stream is None else of_stream
    else:  # few folders have the log of a stream
        listed, of_stream = both(store, visible, lambda: _of_stream(store))
        entries = listed if of_stream is None else of_stream
    if request.folders is not None:
        entries = [entry for entry in entries if entry.name.rpartition("/")[0] in request.folders]
    return sorted(entries, key=lambda entry: entry.name)


def _is_hidden(name: str) -> bool:
    *folders, file = name.split("/")
    return file[0] in "_." or any(folder[0] in "_." and "=" not in folder for folder in folders)


def _of_stream(store: LogStore) -> list[Entry] | None:
    """Return the files in the log of Structured Streaming; None if the folder has no such log. Files of failed batches are not in the log."""
    batches: dict[int, str] = {}
    compacted = -1
    for listed in store.list_from(_STREAM_LOG):
        number, dot, suffix = listed.name.rpartition("/")[2].partition(".")
        if number.isdecimal() and suffix in ("", "compact"):
            batches[int(number)] = listed.name
            compacted = max(compacted, int(number)) if dot else compacted
    if not batches:
        return None
    live: dict[str, Entry] = {}
    for batch in sorted(number for number in batches if number >= compacted):
        for entry, is_added in _of_batch(store, batches[batch]):
            live.pop(entry.name, None)
            live |= {entry.name: entry} if is_added else {}
    return list(live.values())


def _of_batch(store: LogStore, name: str) -> Iterator[tuple[Entry, bool]]:
    try:
        version, *lines = store.get(name).decode().splitlines()
        if version != "v1":
            raise ValueError(f"version {version}")
        for line in filter(None, lines):
            value = json.loads(line)
            path = str(value["path"])
            root = store.url.partition("://")[2].lstrip("/")
            # Hadoop writes the path with a scheme and unencoded. The scheme may differ from the store's, so only the path is compared.
            _, inside, relative = path.partition(f"{root}/")
            if not inside:
                raise ValueError(f"the path {path}, which is not below {store.url}")
            yield Entry(relative, int(value["size"]), int(value["modificationTime"])), value["action"] == "add"
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTable(
            f"{store.url}/{name}, the log of the stream that wrote the files, cannot be read: {error}. Restore it; or, if every file of the "
            "folder counts, set spark.databricks.delta.convert.useMetadataLog to false (use_stream_log=False).",
            code="TAHOE_CORRUPT_STREAM_LOG",
            table=store.url,
            file=name,
        ) from error


# -- footers -----------------------------------------------------------------------------------------------------------------


def each_footer(
    store: LogStore, names: Sequence[str], look: Callable[[FileMetaData, str], _Seen], progress: Progress
) -> Iterator[_Seen]:
    """Read the footers concurrently and yield the results of `look(footer, url)` in the order of the names.

    Raises `CorruptTable` (``DELTA_FAILED_READ_FILE_FOOTER``).
    """

    def seen(name: str) -> _Seen:
        return look(_footer(store, name), f"{store.url}/{name}")

    if store.asks_cheaply and len(names) <= _THREADS:  # starting threads would take longer
        yield from tracked(map(seen, names), progress, "footers read", len(names))
        return
    threads = _THREADS if store.asks_cheaply else _REQUESTS_AT_ONCE
    with ThreadPoolExecutor(threads, thread_name_prefix="tahoe-footers") as pool:
        try:
            yield from tracked(pool.map(seen, names), progress, "footers read", len(names))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _footer(store: LogStore, name: str) -> FileMetaData:
    try:
        with store.open_input(name) as source:
            return pq.read_metadata(source)
    except (pa.ArrowInvalid, pa.ArrowIOError) as error:
        raise CorruptTable(
            f"{store.url}/{name} is not a Parquet file: {str(error).splitlines()[0]}. Move it out of the folder; names that begin "
            "with '_' or "
            "'.' are left alone.",
            code="DELTA_FAILED_READ_FILE_FOOTER",
            table=store.url,
            file=name,
        ) from error


def _footers(
    store: LogStore, entries: Sequence[Entry], request: FolderRequest, progress: Progress
) -> tuple[StructType, list[tuple[str, bool]]]:
    """Return the merged schema, and for each file its statistics and whether they count NaN (empty if statistics are off)."""
    schema, statistics = StructType(()), list[tuple[str, bool]]()
    names = [entry.name for entry in entries]
    seen = each_footer(store, names, lambda footer, place: _seen(footer, place, request), progress)
    for name, (file_schema, stats) in zip(names, seen, strict=True):
        if request.schema is None and file_schema != schema:
            schema = merged(schema, file_schema, f"{store.url}/{name}")
        statistics.append(stats)
    schema = schema if request.schema is None else request.schema
    if not schema.fields:
        raise InvalidRequest(
            f"Failed to infer schema from the files of {store.url}: none of them has a column.",
            code="DELTA_FAILED_INFER_SCHEMA",
            table=store.url,
        )
    return schema, statistics


def _seen(footer: FileMetaData, place: str, request: FolderRequest) -> tuple[StructType, tuple[str, bool]]:
    schema = footer_schema(footer, place) if request.schema is None else request.schema
    if not request.statistics:
        return schema, ("", False)
    indexed = indexed_columns(schema, request.partition_schema.names, request.configuration)
    prefix = string_prefix_length(request.configuration)
    statistics = statistics_of_footer(footer, schema, indexed, prefix_length=prefix)
    return schema, (statistics.to_json(), has_greatest_float(statistics, indexed))


def _with_partition_columns(schema: StructType, partitions: StructType) -> StructType:
    """Append the partition columns. A partition column that is in the files too keeps its position and gets the partition's type."""
    partition_columns = {column.name.lower(): column for column in as_nullable(partitions)}
    columns = [partition_columns.pop(column.name.lower(), column) for column in schema]
    return StructType((*columns, *partition_columns.values()))
