"""Read an Iceberg table as the content of a Delta table: columns by id, live files, partition values, statistics and deleted rows.

    newest metadata file ─► snapshot ─► manifests ─┬─► data files ─► names, partition values       footers ─► fit? statistics
                                                   └─► position deletes ─► deleted rows of each file ─► vectors

Source: Iceberg's format/spec.md. Metadata and manifests are read by PyIceberg (the extra ``iceberg``), through the table's own store; no
data is read. Types, partitions and files that Delta does not support are refused before anything is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound, Unsupported
from tahoe.base.progress import Progress, silent
from tahoe.ops.copies.iceberg_columns import check_file, delta_schema, names_in_file
from tahoe.ops.copies.iceberg_deletes import dead_rows
from tahoe.ops.copies.iceberg_partitions import (
    Bounds,
    Partition,
    bounds_of,
    check_bounds,
    partition_values,
    partitions_of,
    with_generated,
)
from tahoe.ops.copies.parquet_folder import ConvertibleTable, each_footer
from tahoe.protocol.actions import AddFile
from tahoe.protocol.dv import inline_descriptor
from tahoe.protocol.features import Feature
from tahoe.protocol.identifier_fields import identifier_property
from tahoe.protocol.nan_bounds import with_statistics
from tahoe.protocol.properties import FEATURE_PREFIX
from tahoe.protocol.statistics.bounds import Leaf
from tahoe.protocol.statistics.collect import indexed_columns, statistics_of_footer, string_prefix_length
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.schema.mapping import MAX_ID_KEY
from tahoe.schema.types import StructType
from tahoe.store.location import encode_path
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyroaring import BitMap64

    from tahoe.ops.copies.iceberg_snapshot import IcebergFile


_FOLDER = "metadata"
_METADATA = re.compile(r"(?:v(\d+)|(\d+)-[^/]+?)(?:\.gz)?\.metadata\.json")
_HINT = "version-hint.text"
_NOT_COPIED = ("delta.", "delta-", "tahoe-", "schema.name-mapping.")
_VECTORS = {"delta.enableDeletionVectors": "true", f"{FEATURE_PREFIX}{Feature.DELETION_VECTORS}": "supported"}


@dataclass(frozen=True, slots=True)
class IcebergRequest:
    """The options for reading an Iceberg table.

    Args:
        statistics: whether to collect statistics of each file.
        configuration: the properties of the new table, which select the columns with statistics.
        time_zone: the time zone of the session.
    """

    statistics: bool = True
    configuration: Mapping[str, str] = field(default_factory=dict)
    time_zone: str = "UTC"


def is_iceberg(store: LogStore) -> bool:
    """Whether the folder contains Iceberg metadata."""
    return any(_METADATA.fullmatch(name.rpartition("/")[2]) for name in store.names_from(_FOLDER))


def iceberg_table(store: LogStore, request: IcebergRequest, progress: Progress = silent) -> ConvertibleTable:
    """Read the newest snapshot of an Iceberg table as the content of a Delta table.

    Args:
        store: the store of the table's folder.
        progress: called with the numbers of manifests and footers read.

    Raises:
        NotFound: ``DELTA_TABLE_NOT_FOUND``: there is no Iceberg metadata.
        InvalidRequest: ``TAHOE_ICEBERG_METADATA_AMBIGUOUS``; ``DELTA_CLONE_INCOMPATIBLE_SOURCE``: files have another partition spec.
        Unsupported: ``TAHOE_LIBRARY_MISSING``; types, partitions, files or deletes that Delta does not support.
        CorruptTable: metadata or a file cannot be read, or is outside the table's folder.
    """
    newest = newest_metadata_file(store)
    try:
        from tahoe.ops.copies.iceberg_snapshot import open_snapshot
    except ImportError as error:
        raise Unsupported(
            f"{store.url} is an Iceberg table, and to read it needs PyIceberg: pip install 'tahoe-delta[iceberg]'.",
            code="TAHOE_LIBRARY_MISSING",
            table=store.url,
        ) from error
    snapshot = open_snapshot(store, newest, progress)
    columns = delta_schema(snapshot.schema, store.url)
    partitions = partitions_of(snapshot, columns, store.url, request.time_zone)
    schema, last_id = with_generated(columns, partitions, snapshot.last_column_id)
    indexed = indexed_columns(schema, [partition.name for partition in partitions], request.configuration)
    statistics, names = _statistics(store, snapshot.data, schema, partitions, indexed, request, progress)
    if (renamed := delta_schema(snapshot.schema, store.url, names)) != columns:  # statistics are under physical names
        schema, last_id = with_generated(renamed, partitions, snapshot.last_column_id)
        indexed = indexed_columns(schema, [partition.name for partition in partitions], request.configuration)
        statistics, _ = _statistics(store, snapshot.data, schema, partitions, indexed, request, progress)
    dead = dead_rows(store, snapshot.data, snapshot.deletes)
    values = [partition_values(file, partitions, schema, store.url) for file in snapshot.data]
    files = [
        AddFile(encode_path(file.name), of_file, file.size, snapshot.timestamp_ms, True)
        for file, of_file in zip(snapshot.data, values, strict=True)
    ]
    files = [
        _finished(add, stats if request.statistics else None, indexed, stats.num_records, dead.get(file.name))
        for add, stats, file in zip(files, statistics, snapshot.data, strict=True)
    ]
    properties = {
        **{key: value for key, value in snapshot.properties.items() if not key.lower().startswith(_NOT_COPIED)},
        "delta.columnMapping.mode": "id",
        MAX_ID_KEY: str(last_id),  # files may still contain dropped columns with these ids
        **identifier_property(snapshot.schema.get("identifier-field-ids") or ()),
        **(_VECTORS if dead else {}),
    }
    return ConvertibleTable(schema, tuple(partition.name for partition in partitions), files, store.url, "iceberg", properties)


def refuse_partition_columns(table: str, columns: StructType | None) -> None:
    """Raise `InvalidRequest` if the caller names partition columns: they are in the Iceberg metadata."""
    if columns is not None and columns.fields:
        raise InvalidRequest(
            f"Partition schema cannot be specified when converting Iceberg tables: {table} defines its partitions itself. Leave it out.",
            code="DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES",
            table=table,
        )


def newest_metadata_file(store: LogStore) -> str:
    """Return the metadata file with the highest number. If there is a version hint (table without a catalog), check it against that file."""
    numbers: dict[int, list[str]] = {}
    names = [listed.rpartition("/")[2] for listed in store.names_from(_FOLDER)]
    for name in names:
        match = _METADATA.fullmatch(name)
        if match is not None:
            numbers.setdefault(int(match[1] or match[2]), []).append(f"{_FOLDER}/{name}")
    if not numbers:
        raise NotFound(
            f"There is no Iceberg table at {store.url}: its folder '{_FOLDER}' has no file *.metadata.json. Check the path.",
            code="DELTA_TABLE_NOT_FOUND",
            table=store.url,
        )
    if _HINT in names:
        _check_hint(store, numbers)
    newest, *rest = sorted(numbers[max(numbers)])
    if rest:
        raise InvalidRequest(
            f"The Iceberg table at {store.url} has several newest metadata files: {', '.join([newest, *rest])}. All but one are of writers "
            "that lost; only its catalog knows which one is current. Remove the others, or let an Iceberg engine commit once more.",
            code="TAHOE_ICEBERG_METADATA_AMBIGUOUS",
            table=store.url,
        )
    return newest


def _check_hint(store: LogStore, numbers: Mapping[int, Sequence[str]]) -> None:
    """Raise `InvalidRequest` if the highest number cannot be reached from the version hint.

    The hint may be outdated: a writer may have crashed between writing the two files. Readers advance from it while the next number exists.
    """
    text = store.get(f"{_FOLDER}/{_HINT}").decode("utf-8", "replace").strip()
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else -1
    last = number
    while f"{_FOLDER}/v{last + 1}.metadata.json" in numbers.get(last + 1, ()):
        last += 1
    newest = max(numbers)
    # If two engines have two tables in one folder, files named by a catalog are beside those of a table without a catalog.
    if number not in numbers or last != newest or any(not name.startswith(f"{_FOLDER}/v") for name in chain(*numbers.values())):
        raise InvalidRequest(
            f"The Iceberg table at {store.url} says in {_FOLDER}/{_HINT} that its version is {text[:20]!r}, from which its metadata files do "
            f"not lead to the newest of them, {newest}. Only the engine that wrote it knows which one is current: let it commit "
            "once more, or remove "
            "the files that no version needs.",
            code="TAHOE_ICEBERG_METADATA_AMBIGUOUS",
            table=store.url,
        )


# -- footers and deleted rows -----------------------------------------------------------------------------------------------------


def _statistics(
    store: LogStore,
    files: Sequence[IcebergFile],
    schema: StructType,
    partitions: Sequence[Partition],
    indexed: Sequence[Leaf],
    request: IcebergRequest,
    progress: Progress,
) -> tuple[list[FileStatistics], dict[int, str]]:
    """Read the footers: return the statistics of each file (only the row count if statistics are off), and the physical name of each column.

    The name, by column id, is that in the oldest file with the column. Refuses files that cannot be read by column ids.
    """
    prefix = string_prefix_length(request.configuration)

    def look(footer: FileMetaData, place: str) -> tuple[FileStatistics, dict[int, str], Bounds]:
        columns = footer.schema.to_arrow_schema()
        check_file(schema, columns, place)
        names, bounds = dict(names_in_file(columns)), bounds_of(footer, columns, partitions)
        if not request.statistics:
            return FileStatistics(footer.num_rows), names, bounds
        return statistics_of_footer(footer, schema, indexed, column_mapping_mode="id", prefix_length=prefix), names, bounds

    statistics, oldest, each = list[FileStatistics](), dict[int, tuple[int, str]](), list[Bounds]()
    seen = each_footer(store, [file.name for file in files], look, progress)
    for file, (stats, names, bounds) in zip(files, seen, strict=True):
        _check_rows(store, file, stats.num_records)
        statistics.append(stats)
        each.append(bounds)
        for number, name in names.items():
            oldest[number] = min(oldest.get(number, (file.sequence, name)), (file.sequence, name))
    check_bounds(files, each, partitions, store.url)
    return statistics, {number: name for number, (_, name) in oldest.items()}


def _check_rows(store: LogStore, file: IcebergFile, rows: int) -> None:
    if file.rows != rows:
        raise CorruptTable(
            f"File {file.name} of the Iceberg table {store.url} has {rows} rows, and {file.rows} by its manifest: it was exchanged. Restore "
            "it.",
            code="TAHOE_CORRUPT_ICEBERG_METADATA",
            table=store.url,
            file=file.name,
        )


def _finished(add: AddFile, stats: FileStatistics | None, indexed: Sequence[Leaf], rows: int, dead: BitMap64 | None) -> AddFile:
    """Add the statistics and the deletion vector of a file. With a deletion vector, the protocol requires the row count."""
    if not dead:
        return add if stats is None else with_statistics(add, stats, indexed)
    stated = FileStatistics(rows) if stats is None else stats
    return replace(with_statistics(add, stated.widened(), indexed), deletion_vector=inline_descriptor(dead))
