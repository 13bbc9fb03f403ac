"""CLONE: a new table with the rows of a version of another table. A shallow clone references the source's files, a deep clone copies them.

    shallow   source's files ─► absolute paths ─► a record in the source (`tahoe.store.outside`) ─► commit
    deep      source's files ─► less those of the clone ─► copied concurrently ─► commit, which removes files that left the source

The clone is visible only after the commit. An interrupted deep clone can be resumed: a file that exists in the target with the expected size
is not copied again. Running a finished clone again therefore copies only new files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.html import ShownAsText
from tahoe.base.wording import counted
from tahoe.log.files.live_files import add_files, key_of
from tahoe.log.files.removed_files import added
from tahoe.ops.copies.clone_source import CloneSource, FileCopy, copied, referenced
from tahoe.ops.copies.iceberg_deletes import with_vector_files
from tahoe.ops.tables.create import exists_already, refuse_files, with_kept_marks
from tahoe.protocol.actions import AddFile, Metadata, Protocol
from tahoe.protocol.features import COORDINATED, ENFORCED
from tahoe.protocol.properties import TableProperties, validate_properties
from tahoe.protocol.protocols import features_of, normalise, upgraded
from tahoe.protocol.row_tracking import with_materialized_columns
from tahoe.protocol.statistics.collect import check_statistics_columns
from tahoe.schema.mapping import explode
from tahoe.schema.types import GENERATION_EXPRESSION, StructField, schema_from_json
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path, is_outside
from tahoe.store.log_store import LogStore
from tahoe.store.outside import CloneRecord, record_clone
from tahoe.txn.commit import Committed
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction

Copier = Callable[[LogStore, LogStore, Sequence[FileCopy]], int]
"""Copies files from the first store to the second; returns how many of them existed there already with the expected size."""

_OF_THE_SOURCE_ALONE = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")


@dataclass(frozen=True, slots=True)
class CloneRequest:
    """The options of a CLONE.

    Args:
        shallow: reference the source's files; else copy them.
        how: ``create``, ``createIfNotExists``, ``replace`` or ``createOrReplace``.
        properties: table properties of the clone; they override those of the source.
        dry_run: report the result without writing anything.
    """

    shallow: bool
    how: str = "create"
    properties: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Cloned(ShownAsText):
    """The result of a CLONE or of its dry run; `str` gives a readable summary.

    Args:
        table: the clone's URL.
        source: the source's name in the table history.
        version: the version of the commit; None for a dry run, and when the clone already equals the source.
        metrics: the metrics under delta-spark's names, as the SQL statement returns them.
    """

    table: str
    source: str
    source_version: int
    version: int | None
    metrics: dict[str, int]
    shallow: bool
    dry_run: bool = False

    def __str__(self) -> str:
        metrics, kind = self.metrics, "shallow" if self.shallow else "deep"
        source = self.source if self.source_version < 0 else f"version {self.source_version} of {self.source}"
        files = f"{counted(metrics['source_num_of_files'], 'file')} of {metrics['source_table_size']:,} bytes"
        text = f"{self.table}, a {kind} clone of {source}: {files}"
        if not self.shallow:
            text += f"; {counted(metrics['num_copied_files'], 'file')} of {metrics['copied_files_size']:,} bytes copied"
        if metrics["num_removed_files"]:
            text += f"; {counted(metrics['num_removed_files'], 'file')} of {metrics['removed_files_size']:,} bytes removed"
        if self.dry_run:
            return f"CLONE would make {text}."
        return text + ("." if self.version is not None else "; nothing was to be done.")


def clone(
    source: CloneSource,
    transaction: Transaction,
    commit: Callable[[Transaction, Operation], Committed],
    copy: Copier,
    request: CloneRequest,
) -> Cloned:
    """Clone a table.

    Args:
        transaction: a transaction on the clone, which may exist already.
        commit: commits the transaction.
        copy: copies the files of a deep clone.

    Raises:
        InvalidRequest: ``DELTA_TABLE_ALREADY_EXISTS``; ``DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION``: a folder with files other than
            copies of the source's; ``DELTA_UNSUPPORTED_NON_EMPTY_CLONE``: a shallow clone over a table with files;
            ``DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE``; properties that the files do not support.
        NotFound: ``DELTA_FILE_NOT_FOUND``: a file of the source is missing; ``DELTA_TABLE_NOT_FOUND``: there is no table to replace.
        ConcurrentWriteException: another writer committed to the clone meanwhile. Run it again: copied files are not copied again.
    """
    target = transaction.snapshot
    url = transaction.store.url
    _check_target(source, transaction, request)
    if target is not None and request.how == "createIfNotExists":
        return Cloned(url, source.name, source.version, None, _metrics(source, (), ()), request.shallow)
    metadata = _metadata(source, target, request, transaction)
    new, copies, removed = _differences(source, target, metadata, transaction, request)
    if target is None and request.how in ("create", "createIfNotExists"):
        refuse_files(transaction.store, url, exists=False, expected={file_copy.target for file_copy in copies})
    metrics = _metrics(source, () if request.shallow else new, removed)
    is_same = target is not None and not new and not removed and metadata == target.metadata
    if request.dry_run or is_same:
        deque(new, maxlen=0)  # the path of a file is checked when the file is requested
        return Cloned(url, source.name, source.version, None, metrics, request.shallow, request.dry_run)
    _stage(transaction, source, metadata, new, removed)
    _fetch(transaction, source, copies, copy, request)
    transaction.inputs = (source.store.url,)
    committed = commit(transaction, _operation(source, metrics))
    return Cloned(url, source.name, source.version, committed.version, metrics, request.shallow)


def _differences(
    source: CloneSource, target: Snapshot | None, metadata: Metadata, transaction: Transaction, request: CloneRequest
) -> tuple[Sequence[AddFile], Sequence[FileCopy], Sequence[AddFile]]:
    """Return the files that the clone lacks, the copies for them, and the files that left the source. A shallow clone has no files yet."""
    if request.shallow:
        return added(source.files, partial(referenced, source)), (), ()
    url = transaction.store.url
    files = [copied(source, add) for add in source.files]
    there = {} if target is None else {key_of(add, url): add for add in add_files(target.files())}
    keys = {key_of(add, url) for add, _ in files}
    if target is not None and source.protocol is None and keys & there.keys():
        _check_names(url, target.metadata, metadata)
    new = [(add, copies) for add, copies in files if key_of(add, url) not in there]
    removed = [add for key, add in there.items() if key not in keys]
    return [add for add, _ in new], [file_copy for _, copies in new for file_copy in copies], removed


def _check_target(source: CloneSource, transaction: Transaction, request: CloneRequest) -> None:
    url, target = transaction.store.url, transaction.snapshot
    if target is None and request.how == "replace":
        transaction.existing()
    if target is not None and request.how == "create":
        raise exists_already(url, "Replace it (CREATE OR REPLACE TABLE … CLONE, replace=True), or choose another place.")
    if target is not None and request.shallow and target.num_files and request.how != "createIfNotExists":
        raise InvalidRequest(
            f"The clone destination table is non-empty: {url} has {counted(target.num_files, 'file')}. Please TRUNCATE or DELETE FROM the "
            "table before running CLONE, or make a deep clone, which removes them.",
            code="DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
            table=url,
        )
    if url == source.store.url:
        raise InvalidRequest(
            f"You tried to REPLACE an existing table ({url}) with CLONE, of itself. This operation is unsupported: name another place for "
            "the clone, or restore the table to a version.",
            code="DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE",
            table=url,
        )


def _metadata(source: CloneSource, target: Snapshot | None, request: CloneRequest, transaction: Transaction) -> Metadata:
    """Return the source's metadata with the clone's own id."""
    there = None if target is None else target.metadata
    properties = validate_properties(request.properties)
    check_statistics_columns(schema_from_json(source.metadata.schema_string), source.metadata.partition_columns, properties)
    configuration = {key: value for key, value in source.metadata.configuration.items() if key not in _OF_THE_SOURCE_ALONE}
    if there is not None:
        configuration |= {key: there.configuration[key] for key in _OF_THE_SOURCE_ALONE if key in there.configuration}
    configuration = with_materialized_columns({**configuration, **properties}, transaction.clock)
    for other in [source.metadata.configuration, *([] if there is None or not target else [there.configuration])]:
        _check_mapping(transaction.store.url, other, configuration)
    metadata = replace(
        source.metadata,
        id=transaction.clock.uuid() if there is None else there.id,
        name=None if there is None else there.name,
        description=None if there is None else there.description,
        configuration=configuration,
        created_time=source.metadata.created_time if there is None or source.protocol is not None else there.created_time,
    )
    return metadata if there is None else with_kept_marks(metadata, there)


def _generated(column: StructField) -> tuple[str, str] | None:
    """Return the physical name and the expression of a generated column; None for any other column."""
    expression = column.metadata.get(GENERATION_EXPRESSION)
    return None if expression is None else (column.physical_name, str(expression))


def _check_names(url: str, before: Metadata, after: Metadata) -> None:
    """Refuse changed column names: files that stay have partition values and statistics under the names of the earlier clone."""
    names = {column.field_id: column.physical_name for _, column in explode(after.schema) if column.field_id is not None}
    mapped = [(column, column.field_id) for _, column in explode(before.schema) if column.field_id is not None]
    generated = {column for column in map(_generated, after.schema) if column is not None}  # not in the files: ids may differ
    renamed = [
        column.name
        for column, number in mapped
        if names.get(number, column.physical_name) != column.physical_name and _generated(column) not in generated
    ]
    if renamed or before.partition_columns != after.partition_columns:
        difference = f"column {renamed[0]} has another name" if renamed else "it is partitioned otherwise"
        raise InvalidRequest(
            f"The clone {url} cannot be updated: {difference} in the source now, and the log of the clone has the older names of the "
            "files that both have. Make a new clone at another place, or drop this one first.",
            code="TAHOE_CLONE_OF_RENAMED_COLUMNS",
            table=url,
        )


def _check_mapping(url: str, other: Mapping[str, str], configuration: Mapping[str, str]) -> None:
    before, after = (TableProperties(properties).column_mapping_mode for properties in (other, configuration))
    if before != after:
        raise InvalidRequest(
            f"Column mapping of the clone {url} cannot be '{after}' where it is '{before}' in its source, or in the table that it replaces: "
            "the files stay as they are. Leave delta.columnMapping.mode out, and set it to 'name' afterwards.",
            code="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            table=url,
        )


def _stage(
    transaction: Transaction,
    source: CloneSource,
    metadata: Metadata,
    new: Sequence[AddFile],
    removed: Sequence[AddFile],
) -> None:
    target = transaction.snapshot
    transaction.read_whole_table()
    transaction.may_be_moved = False
    transaction.enforces = ENFORCED  # the source enforced the same constraints
    transaction.row_ids_kept = True
    transaction.row_id_mark = source.row_id_mark
    transaction.set_metadata(metadata)
    if source.protocol is not None:
        # The commit coordinator of the source does not know the clone.
        minimal = normalise(features_of(source.protocol) - COORDINATED, Protocol(1, 1))
        protocol = minimal if target is None else upgraded(target.protocol, features_of(minimal))
        transaction.set_protocol(protocol)
    staged = {} if target is None else target.state.domains
    transaction.stage(*(domain for domain in source.domains if staged.get(domain.domain) != domain))
    if source.protocol is None:
        new = with_vector_files(transaction, future_config(transaction), new)
    transaction.stage_files(removed, new)


def _fetch(
    transaction: Transaction,
    source: CloneSource,
    copies: Sequence[FileCopy],
    copy: Copier,
    request: CloneRequest,
) -> None:
    """Make the files accessible to the clone before the commit: copy them, or record a shallow clone in their tables."""
    if request.shallow:
        version = None if source.version < 0 else source.version
        roots = {source.store.url: source.store}
        for name in (decode_path(add.path, source.store.url, outside=True) for add in source.files):
            if is_outside(name):
                store, _ = source.store.outside.at(name)
                roots[store.url] = store
        for root, store in roots.items():
            record_clone(store, CloneRecord(transaction.store.url, version if root == source.store.url else None))
        transaction.looks_for = "none" if source.is_newest else "all"
        return
    # The deletion vectors of many files may share one file.
    resumed = copy(source.store, transaction.store, list(dict.fromkeys(copies)))
    transaction.looks_for = "all" if resumed else "old"


def _metrics(source: CloneSource, copied_files: Sequence[AddFile], removed: Sequence[AddFile]) -> dict[str, int]:
    return {
        "source_table_size": source.size,
        "source_num_of_files": len(source.files),
        "num_removed_files": len(removed),
        "num_copied_files": len(copied_files),
        "removed_files_size": sum(add.size for add in removed),
        "copied_files_size": sum(add.size for add in copied_files),
    }


def _operation(source: CloneSource, metrics: Mapping[str, int]) -> Operation:
    parameters = {
        "".join(word.capitalize() if at else word for at, word in enumerate(name.split("_"))): n for name, n in metrics.items()
    }
    return Operation("CLONE", {"source": source.name, "sourceVersion": source.version}, parameters)
