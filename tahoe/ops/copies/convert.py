"""CONVERT TO DELTA: existing files become a table in place. Only the first commit of the log is written.

    files and their schema (`parquet_folder`) ─► metaData, one add per file ─► version 0

A folder that is a Delta table already is left unchanged. If two conversions of a folder run concurrently, one of them commits, and the other
reports the existing table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tahoe.base.exceptions import DeltaConcurrentModificationException, InvalidRequest
from tahoe.base.html import ShownAsText
from tahoe.base.progress import Progress, silent
from tahoe.base.wording import counted
from tahoe.ops.copies.iceberg_deletes import with_vector_files
from tahoe.ops.copies.parquet_folder import ConvertibleTable
from tahoe.ops.tables.create import new_metadata
from tahoe.protocol.features import ENFORCED, Feature
from tahoe.protocol.protocols import features_of
from tahoe.schema.mapping import MAX_ID_KEY
from tahoe.txn.commit import Committed
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction

_MAPPED = {
    "parquet": "have no column ids. Leave the property out, and set it to 'name' afterwards.",
    "iceberg": "have their columns by id. Leave the property out.",
}


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """The options of a CONVERT TO DELTA.

    Args:
        statistics: whether to collect statistics of each file.
        properties: table properties of the new table.
        shown_partitions: the partition columns for the history, as the user named them; None for the table's own.
        catalog_table: the name of the table in a catalog, for the history.
        dry_run: report the result without writing anything.
    """

    statistics: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    shown_partitions: Sequence[str] | None = None
    catalog_table: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Converted(ShownAsText):
    """The result of a CONVERT TO DELTA or of its dry run; `str` gives a readable summary.

    Args:
        table: the URL of the table.
        version: the version of the commit; None for a dry run, and when the table was a Delta table already.
        was_delta: whether there was a Delta table already.
        files: the number of files in the table.
        size: their total size in bytes.
        found: the converted files and their schema; None when the table was a Delta table already.
    """

    table: str
    version: int | None
    was_delta: bool = False
    files: int = 0
    size: int = 0
    found: ConvertibleTable | None = field(default=None, repr=False)

    def __str__(self) -> str:
        if self.was_delta:
            return f"{self.table} is a Delta table already: nothing was done."
        contents = f"{counted(self.files, 'file')} of {self.size:,} bytes"
        partitioned = (
            "" if self.found is None or not self.found.partition_by else f", partitioned by {', '.join(self.found.partition_by)}"
        )
        columns = "" if self.found is None else f": {len(self.found.schema)} columns{partitioned}"
        if self.version is None:
            return f"CONVERT TO DELTA of {self.table} would make a table of {contents}{columns}."
        return f"{self.table} is a Delta table of {contents}{columns}."


def convert(
    begin: Callable[[], Transaction],
    commit: Callable[[Transaction, Operation], Committed],
    look: Callable[[Progress], ConvertibleTable],
    request: ConvertRequest,
    progress: Progress = silent,
) -> Converted:
    """Convert existing files to a Delta table.

    Args:
        begin: starts a transaction on the current state of the folder.
        commit: commits the transaction.
        look: lists the files and reads their schema.

    Raises:
        InvalidRequest: ``DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING``, ``DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS``: properties
            that the files do not support; ``DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES``; and the errors of `look`.
    """
    transaction = begin()
    url = transaction.store.url
    if transaction.snapshot is not None:
        return Converted(url, None, was_delta=True)
    source = look(progress)
    size = sum(file.size for file in source.files)
    _stage(transaction, source, request)
    if request.dry_run:
        return Converted(url, None, False, len(source.files), size, source)
    try:
        version = commit(transaction, _operation(source, request)).version
    except DeltaConcurrentModificationException:
        if begin().snapshot is None:
            raise
        return Converted(url, None, was_delta=True)
    return Converted(url, version, False, len(source.files), size, source)


def _stage(transaction: Transaction, source: ConvertibleTable, request: ConvertRequest) -> None:
    url = transaction.store.url
    metadata = new_metadata(
        source.schema,
        transaction.clock,
        partition_by=source.partition_by,
        properties={**source.properties, **request.properties, **_facts(source)},
    )
    transaction.set_metadata(metadata)
    config = future_config(transaction)
    if config.column_mapping_mode != source.properties.get("delta.columnMapping.mode", "none"):
        raise InvalidRequest(
            f"The configuration 'delta.columnMapping.mode' cannot be set to `{config.column_mapping_mode}` when using CONVERT TO DELTA: "
            f"the files of {url} {_MAPPED[source.source_format]}",
            code="DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING",
            table=url,
        )
    if Feature.ROW_TRACKING in features_of(config.protocol) and not request.statistics:
        raise InvalidRequest(
            f"Cannot enable row tracking on {url} without collecting statistics, which give the number of row ids that each file "
            "needs. Leave NO "
            "STATISTICS out, or the property delta.enableRowTracking.",
            code="DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS",
            table=url,
        )
    transaction.enforces = ENFORCED  # rows are not checked; constraints can be added later
    transaction.read_whole_table()
    transaction.may_be_moved = False
    transaction.inputs = (url,)
    transaction.stage(*(source.files if request.dry_run else with_vector_files(transaction, config, source.files)))


def _facts(source: ConvertibleTable) -> dict[str, str]:
    """Return the properties that the user cannot override: the highest column id of the files."""
    return {MAX_ID_KEY: source.properties[MAX_ID_KEY]} if MAX_ID_KEY in source.properties else {}


def _operation(source: ConvertibleTable, request: ConvertRequest) -> Operation:
    partitions = source.partition_by if request.shown_partitions is None else request.shown_partitions
    parameters = {
        "numFiles": len(source.files),
        "partitionedBy": json.dumps(list(partitions), separators=(",", ":")),
        "collectStats": request.statistics,
        **({} if request.catalog_table is None else {"catalogTable": request.catalog_table}),
        "sourceFormat": source.source_format,
    }
    return Operation("CONVERT", parameters, {"numConvertedFiles": len(source.files)})
