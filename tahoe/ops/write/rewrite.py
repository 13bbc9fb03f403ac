"""Rewriting data files with the same rows, as REORG and OPTIMIZE do. Nothing is committed here.

    files ─ their live rows, with their ids ─► a new file of the table's current layout ─► remove + add, dataChange = false

Rows are processed in batches. Change data feeds and streams are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.exceptions import StorageFailure
from tahoe.base.lazy import pq
from tahoe.base.progress import Progress, silent, tracked
from tahoe.ops.write.file_stream import NewFile, new_name, write_stream
from tahoe.ops.write.row_ids import config_with_row_ids, without_id_statistics
from tahoe.ops.write.writer import tagged
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import as_clustered_as
from tahoe.protocol.features import ENFORCED, Feature
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.types import DataType, PrimitiveType, StructField, StructType
from tahoe.schema.variant_shredding import is_shredded
from tahoe.snapshot.scan import BareVersion, Scan, ScannedVersion
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.txn.transaction import Operation, Transaction

_FOOTERS_AT_ONCE = 16
_VARIANT = PrimitiveType("variant")
_EXACT = (
    *(
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        pa.string(),
        pa.binary(),
    ),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC")),
)
"""Types that Tahoe reads and writes unchanged."""


def rewritten(version: ScannedVersion, adds: Sequence[AddFile], clock: Clock, name: str, *, ahead: bool = True) -> AddFile | None:
    """Write the live rows of files as one new file, in the order of the files, with their ids if the table tracks rows.

    Args:
        adds: live files of one partition.
        name: from `tahoe.ops.write.file_stream.new_name`.
        ahead: whether files are prefetched in parallel, which is useless if several rewrites run in parallel.

    Returns:
        The action that adds it; None if the files have no live row. Nothing is committed, and constraints are not checked, because the
        rows were in the table before.

    Raises:
        StorageFailure: from the store; written data is deleted as far as storage allows.
    """
    try:
        stored = as_stored(version, adds)
        with closing(Scan(stored).read_to_move(adds, ahead=ahead)) as rows:
            return rewritten_rows(version, rows, clock, NewFile(name, adds[0].partition_values), stored)
    except BaseException:
        with suppress(StorageFailure):
            version.store.delete(name)
        raise


def rewritten_rows(
    version: ScannedVersion, rows: Iterable[pa.RecordBatch], clock: Clock, file: NewFile, stored: ScannedVersion | None = None
) -> AddFile | None:
    """Write rows from `Scan.read_to_move`, in any order, as `rewritten` does; after an error the caller deletes the partial file.

    Args:
        stored: from `as_stored`, if the rows were read with it.
    """
    config = version.config
    if stored is not None:
        file = replace(file, stored=config_with_row_ids(stored.config))
    written = write_stream(config_with_row_ids(config), version.store, rows, clock, file)
    return None if written is None else tagged(config, without_id_statistics(config, written))


def as_stored(version: ScannedVersion, adds: Sequence[AddFile]) -> ScannedVersion:
    """Return the version for reading these files such that variants with the same shredding in all of them keep it in the new file."""
    shreds = version.config.is_active(Feature.VARIANT_SHREDDING)
    return with_variants_as_stored(version, list(footers(version, adds))) if shreds else version


def stage_rewrite(
    transaction: Transaction, snapshot: Snapshot, adds: Iterable[AddFile], progress: Progress = silent
) -> Operation:
    """Stage the replacement of these files by new ones with the same live rows, which keep their ids.

    Args:
        snapshot: of the transaction.
        adds: live files.
        progress: receives the progress over rewritten files.

    Returns:
        The operation, with the metrics that the history shows.
    """
    clock = transaction.clock
    removed: list[AddFile] = []
    added: list[AddFile] = []
    for add in tracked(adds, progress, "files rewritten"):
        new = rewritten(snapshot, [add], clock, new_name(snapshot.config, clock, add.partition_values))
        removed.append(add)
        # The same rows in the same order, so their clustering is unchanged.
        added += [] if new is None else [as_clustered_as(new, add)]
    stage_replacement(transaction, removed, added)
    return reorg_operation(removed, added)


def stage_replacement(transaction: Transaction, removed: Sequence[AddFile], added: Sequence[AddFile]) -> None:
    """Stage the replacement of files by others with the same rows and the same ids."""
    now = transaction.clock.now_ms()
    transaction.enforces = ENFORCED  # the rows were in the table before
    transaction.stage(*(add.remove(now, data_change=False) for add in removed), *added)
    transaction.read_files(add.key for add in removed)
    transaction.row_ids_kept = True


def reorg_operation(removed: Sequence[AddFile], added: Sequence[AddFile]) -> Operation:
    """Return the operation of a REORG for the history, with the reference's names."""
    return Operation("REORG", {"predicate": "[]", "applyPurge": True}, rewrite_metrics(removed, added))


def rewrite_metrics(removed: Sequence[AddFile], added: Sequence[AddFile]) -> dict[str, int]:
    """Return the metrics of REORG and OPTIMIZE, with the reference's names."""
    sizes = sorted(add.size for add in added)
    quartiles = {
        f"p{percent}FileSize": sizes[min(len(sizes) * percent // 100, len(sizes) - 1)] for percent in (25, 50, 75) if sizes
    }
    return {
        "numAddedFiles": len(added),
        "numRemovedFiles": len(removed),
        "numAddedBytes": sum(sizes),
        "numRemovedBytes": sum(add.size for add in removed),
        "minFileSize": sizes[0] if sizes else 0,
        **quartiles,
        "maxFileSize": sizes[-1] if sizes else 0,
        "numDeletionVectorsRemoved": sum(add.deletion_vector is not None for add in removed),
    }


def footers(snapshot: ScannedVersion, adds: Sequence[AddFile]) -> Iterator[pq.FileMetaData]:
    """Yield the footers of these files, in their order, a few read in parallel."""
    read: Callable[[AddFile], pq.FileMetaData] = partial(_footer, snapshot)
    if len(adds) < 2:
        yield from map(read, adds)
        return
    with ThreadPoolExecutor(min(_FOOTERS_AT_ONCE, len(adds))) as pool:
        yield from pool.map(read, adds)


def _footer(snapshot: ScannedVersion, add: AddFile) -> pq.FileMetaData:
    store = snapshot.store
    with store.open_input(decode_path(add.path, store.url, outside=True)) as source:
        return pq.read_metadata(source)


def with_variants_as_stored(version: ScannedVersion, footers: Sequence[pq.FileMetaData]) -> ScannedVersion:
    """Return the version with its shredded variants as the structs in these files; a column stays a variant where the files differ.

    A rewrite copies these structs, so that the variant is not reassembled and keeps the shredding that Spark chose (PROTOCOL.md, "Variant
    Shredding"). Reassembling a variant is correct too, but the file is larger.

    Args:
        footers: of all files that are read together.
    """
    config = version.config
    if config.column_mapping_mode == "id":
        return version  # the parts of a variant have no ids to match by
    types = [footer.schema.to_arrow_schema() for footer in footers]
    columns = tuple(_as_stored(column, types) for column in version.schema)
    if columns == version.schema.fields:
        return version
    metadata = replace(config.metadata, schema_string=StructType(columns).to_json())
    return BareVersion(version.store, version.version, replace(config, metadata=metadata))


def _as_stored(column: StructField, files: Sequence[pa.Schema]) -> StructField:
    if column.data_type != _VARIANT:
        return column
    types = [file.field(column.physical_name).type for file in files if column.physical_name in file.names]
    # A file written before the column was added cannot mark NULL in a part that must not be missing.
    same = 0 < len(types) == len(files) and is_shredded(types[0]) and all(data_type.equals(types[0]) for data_type in types)
    return replace(column, data_type=_struct(types[0])) if same and _is_exact(types[0]) else column


def _struct(stored: pa.StructType) -> DataType:
    (column,) = from_arrow_schema(pa.schema([pa.field("v", stored)])).fields
    return column.data_type


def _is_exact(data_type: pa.DataType) -> bool:
    if pa.types.is_struct(data_type):
        return bool(data_type.num_fields) and all(_is_exact(field.type) for field in data_type.fields)
    if pa.types.is_list(data_type):
        return _is_exact(data_type.value_type)
    return data_type in _EXACT or pa.types.is_decimal128(data_type)
