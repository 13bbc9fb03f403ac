"""Rewrite files for readers with fewer features: without column mapping, or with the table's current types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, StorageFailure
from tahoe.base.lazy import pq
from tahoe.base.progress import Progress, silent, tracked
from tahoe.log.replay import add_files
from tahoe.ops.write.file_layout import expected_schema
from tahoe.ops.write.file_stream import NewFile, new_name, write_stream
from tahoe.ops.write.rewrite import footers, rewrite_metrics, stage_replacement, stage_rewrite
from tahoe.ops.write.row_ids import config_with_row_ids, without_id_statistics
from tahoe.protocol import clustering
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.schema.evolve import FORBIDDEN_CHARACTERS
from tahoe.schema.mapping import explode, without_mapping
from tahoe.schema.types import StructField, StructType
from tahoe.schema.walk import all_fields
from tahoe.schema.widening import TYPE_CHANGES_KEY, without_type_changes
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.txn.transaction import Operation, Transaction

_MODE, _MAX_ID = "delta.columnMapping.mode", "delta.columnMapping.maxColumnId"


# -- column mapping ----------------------------------------------------------------------------------------------------------


def is_mapped(config: TableConfig) -> bool:
    """Whether columns have ids or physical names, or new columns will get them."""
    return config.properties.column_mapping_mode != "none" or without_mapping(config.schema) != config.schema


def stage_without_mapping(transaction: Transaction, progress: Progress = silent) -> Operation:
    """Rewrite every file with the logical column names, and stage the new files and a schema without column ids and physical names.

    Raises:
        InvalidRequest: ``DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING``: files do not support a column name.
        Unsupported, CorruptTable: a file cannot be read.
    """
    snapshot = transaction.existing()
    old = snapshot.config
    plain = _unmapped(old)
    transaction.read_whole_table()  # a file added meanwhile has physical names
    transaction.set_metadata(plain.metadata)
    removed, added = list[AddFile](), list[AddFile]()
    try:
        for add in tracked(add_files(snapshot.files()), progress, "files rewritten"):
            removed.append(add)
            added += _with_plain_names(snapshot, plain, add, transaction)
    except BaseException:
        for add in added:
            with suppress(StorageFailure):
                snapshot.store.delete(decode_path(add.path, snapshot.store.url))
        raise
    stage_replacement(transaction, removed, added)
    paths = clustering.clustering_paths(snapshot.state.domains, old.table)
    if paths:
        transaction.stage(clustering.clustering_domain([clustering.logical_path(old.schema, path) for path in paths]))
    metrics = rewrite_metrics(removed, added)
    return Operation(
        "REMOVE COLUMN MAPPING",
        {},
        {
            "numRewrittenFiles": len(removed),
            "numOutputBytes": metrics["numAddedBytes"],
            "numRemovedBytes": metrics["numRemovedBytes"],
            "numDeletionVectorsRemoved": metrics["numDeletionVectorsRemoved"],
        },
    )


def _unmapped(config: TableConfig) -> TableConfig:
    bad = [".".join(path) for path, column in explode(config.schema) if any(c in column.name for c in FORBIDDEN_CHARACTERS)]
    if bad:
        raise InvalidRequest(
            f"Column mapping of table {config.table} cannot be removed: files cannot have columns of the names "
            f"{', '.join(map(repr, bad))}, which contain one of {FORBIDDEN_CHARACTERS!r}. Rename them first.",
            code="DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
            table=config.table,
            columns=bad,
        )
    gone = {_MODE.lower(), _MAX_ID.lower()}
    configuration = {key: value for key, value in config.metadata.configuration.items() if key.lower() not in gone}
    schema = without_mapping(config.schema)
    return replace(config, metadata=replace(config.metadata, schema_string=schema.to_json(), configuration=configuration))


def _with_plain_names(snapshot: Snapshot, plain: TableConfig, add: AddFile, transaction: Transaction) -> list[AddFile]:
    """Write the live rows of a file to a new file; return its action, or nothing if there are no live rows."""
    logical = {column.physical_name: column.name for column in snapshot.config.partition_schema}
    values = {logical.get(name, name): value for name, value in add.partition_values.items()}
    name = new_name(plain, transaction.clock, values)
    try:
        with closing(Scan(snapshot).read_to_move([add])) as rows:
            new = write_stream(config_with_row_ids(plain), snapshot.store, rows, transaction.clock, NewFile(name, values))
    except BaseException:
        with suppress(StorageFailure):
            snapshot.store.delete(name)
        raise
    return [] if new is None else [clustering.as_clustered_as(without_id_statistics(plain, new), add)]


# -- type widening -----------------------------------------------------------------------------------------------------------


def has_type_changes(config: TableConfig) -> bool:
    """Whether the schema has records of type changes (PROTOCOL.md, "Type Change Metadata")."""
    return any(TYPE_CHANGES_KEY in column.metadata for column in all_fields(config.schema))


def stage_without_type_changes(transaction: Transaction, progress: Progress = silent) -> Operation:
    """Rewrite the files in which a widened column has its earlier type, and stage them with a schema without records of type changes."""
    snapshot = transaction.existing()
    adds = list(files_of_other_types(snapshot, progress))
    operation = stage_rewrite(transaction, snapshot, adds, progress)
    schema = without_type_changes(snapshot.schema)
    transaction.set_metadata(replace(snapshot.metadata, schema_string=schema.to_json()))
    return replace(operation, parameters={"predicate": "[]", "applyPurge": False})


def files_of_other_types(snapshot: Snapshot, progress: Progress = silent) -> Iterator[AddFile]:
    """Yield the live files in which a widened column does not have the table's current type."""
    config = snapshot.config
    if not has_type_changes(config):
        return
    expected = list(expected_schema(config))
    widened = {column.physical_name for column in config.schema if _changed(column)}
    fields = [field for field in expected if field.name in widened]
    adds: Sequence[AddFile] = add_files(snapshot.files())
    read = tracked(footers(snapshot, adds), progress, "footers read", len(adds))
    for add, footer in zip(adds, read, strict=True):
        if _has_other_types(footer, fields):
            yield add


def _changed(column: StructField) -> bool:
    return any(TYPE_CHANGES_KEY in field.metadata for field in all_fields(StructType((column,))))


def _has_other_types(footer: pq.FileMetaData, expected: Sequence[pa.Field]) -> bool:
    actual = {field.name: field for field in footer.schema.to_arrow_schema()}
    return any(_narrower(actual[field.name].type, field.type) for field in expected if field.name in actual)


def _narrower(actual: pa.DataType, expected: pa.DataType) -> bool:
    """Whether the type in a file can be widened and differs from the table's type."""
    if pa.types.is_struct(actual) and pa.types.is_struct(expected):
        actual_fields = {field.name: field for field in actual.fields}
        return any(
            _narrower(actual_fields[field.name].type, field.type) for field in expected.fields if field.name in actual_fields
        )
    if pa.types.is_map(actual) and pa.types.is_map(expected):
        return _narrower(actual.key_type, expected.key_type) or _narrower(actual.item_type, expected.item_type)
    if pa.types.is_list(actual) and pa.types.is_list(expected):
        return _narrower(actual.value_type, expected.value_type)
    return any(kind(actual) for kind in _NARROW) and actual != expected


_NARROW = (pa.types.is_integer, pa.types.is_floating, pa.types.is_date, pa.types.is_decimal)
