"""The newest snapshot of an Iceberg table as plain values: its columns, its partitionings, its live files and delete files.

Needs PyIceberg (the extra ``iceberg``): importing this module without it raises `ImportError`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.exceptions import ValidationError
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.serializers import FromInputFile

from tahoe.base.exceptions import CorruptTable, Unsupported
from tahoe.base.progress import Progress, silent, tracked
from tahoe.store.iceberg_io import StoreIO
from tahoe.store.location import name_below
from tahoe.store.log_store import LogStore

_NOT_KEPT = ("void", "bucket")


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """A live data file or delete file.

    Args:
        location: the path in the Iceberg metadata.
        name: the name in the table's store.
        sequence: the sequence number; a delete file applies to data files with a lower or equal one.
        partition: the partition values as PyIceberg reads them, by source column id and transform, without buckets.
    """

    location: str
    name: str
    size: int
    rows: int
    sequence: int
    partition: Mapping[tuple[int, str], Any]


@dataclass(frozen=True, slots=True)
class IcebergSnapshot:
    """The live files and the metadata of a snapshot.

    Args:
        schema: the JSON value of the Iceberg schema.
        specs: the fields of each partition spec, by spec id: transform, source column id, name.
        spec_id: the partition spec of new files.
        timestamp_ms: the timestamp of the snapshot; 0 if the table has none.
        deletes: the files of position deletes.
    """

    schema: Mapping[str, Any]
    specs: Mapping[int, tuple[tuple[str, int, str], ...]]
    spec_id: int
    last_column_id: int
    properties: Mapping[str, str]
    timestamp_ms: int
    data: tuple[IcebergFile, ...]
    deletes: tuple[IcebergFile, ...]


def open_snapshot(store: LogStore, name: str, progress: Progress = silent) -> IcebergSnapshot:
    """Read the newest snapshot of the branch ``main``.

    Args:
        name: the name of the metadata file.
        progress: called after each manifest.

    Raises:
        Unsupported: the table has equality deletes, files other than Parquet, or encrypted files.
        CorruptTable: metadata cannot be read, or a file is outside the table's folder.
    """
    try:
        return _opened(store, name, progress)
    except (ValidationError, ValueError, KeyError, TypeError, IndexError, EOFError) as error:  # corrupt metadata
        raise CorruptTable(
            f"The Iceberg metadata of table {store.url} cannot be read from {name}: {error}. Check it with an Iceberg engine.",
            code="TAHOE_CORRUPT_ICEBERG_METADATA",
            table=store.url,
            file=name,
        ) from error


def _opened(store: LogStore, name: str, progress: Progress) -> IcebergSnapshot:
    io = StoreIO(store)
    metadata = FromInputFile.table_metadata(io.new_input(f"{store.url}/{name}"))
    specs = {
        spec.spec_id: tuple((str(f.transform), f.source_id, f.name) for f in spec.fields) for spec in metadata.specs().values()
    }
    snapshot = metadata.current_snapshot()
    data: list[IcebergFile] = []
    deletes: list[IcebergFile] = []
    for manifest in tracked([] if snapshot is None else snapshot.manifests(io), progress, "manifests read"):
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
            file = entry.data_file
            _check(store, file)
            file_of_entry = _file(store, file, specs[manifest.partition_spec_id], entry.sequence_number or 0)
            (data if file.content == DataFileContent.DATA else deletes).append(file_of_entry)
    return IcebergSnapshot(
        schema=json.loads(metadata.schema().model_dump_json()),
        specs=specs,
        spec_id=metadata.default_spec_id,
        last_column_id=metadata.last_column_id,
        properties=dict(metadata.properties),
        timestamp_ms=0 if snapshot is None else snapshot.timestamp_ms,
        data=tuple(data),
        deletes=tuple(deletes),
    )


def _check(store: LogStore, file: DataFile) -> None:
    if file.content == DataFileContent.EQUALITY_DELETES:
        fault = "deletes rows by their values (equality deletes)"
    elif file.file_format != FileFormat.PARQUET:
        fault = f"is of the format {getattr(file.file_format, 'value', file.file_format)}"
    elif file.key_metadata is not None:
        fault = "is encrypted"
    else:
        return
    raise Unsupported(
        f"The Iceberg table {store.url} has a file that a Delta table cannot have: {file.file_path} {fault}. Let an Iceberg engine "
        "rewrite the "
        "table's files as Parquet (rewrite_data_files).",
        code="TAHOE_ICEBERG_FILE",
        table=store.url,
        file=file.file_path,
    )


def _file(store: LogStore, file: DataFile, spec: tuple[tuple[str, int, str], ...], sequence: int) -> IcebergFile:
    name = name_below(store.url, file.file_path)
    if name is None:
        raise CorruptTable(
            f"The Iceberg table {store.url} has a file outside of its folder: {file.file_path}. A Delta table's paths never leave its "
            "folder. Write the rows to a Delta table with Spark, or let an Iceberg engine rewrite the files below the folder.",
            code="TAHOE_PATH_OUTSIDE_TABLE",
            table=store.url,
            path=file.file_path,
        )
    partition = {
        (source, transform): file.partition[at]
        for at, (transform, source, _) in enumerate(spec)
        if not transform.startswith(_NOT_KEPT)
    }
    return IcebergFile(file.file_path, name, file.file_size_in_bytes, file.record_count, sequence, partition)
