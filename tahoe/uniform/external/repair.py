"""Repair after another writer has changed the Iceberg side: discard its changes, or adopt its rows into the Delta table.

Only appended rows are adopted. They are read by field id and written by the table's own writer, so they pass every check and get
statistics, row ids and constraints like all other rows. VACUUM deletes the writer's files themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.base.json_values import JsonMapping
from tahoe.store.log_store import LogStore
from tahoe.uniform.external.external_changes import ExternalSnapshot, Finding, newest_own_metadata
from tahoe.uniform.external.metadata_listing import MetadataListing

if TYPE_CHECKING:
    from tahoe.uniform.external.external_table import ExternalTable


Append = Callable[..., int]
"""`Table.append`."""

_UNCHANGED = ("schemas", "current-schema-id", "partition-specs", "default-spec-id")


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of a repair, or of its dry run.

    Args:
        kind: ``none`` (no other writer was found), ``discard`` or ``adopt``.
        findings: the traces of the other writer.
        adopted_rows, adopted_files: the counts over the adopted snapshots.
        version: the version of the Delta table that has the adopted rows; None if none were adopted.
        metadata_location: the metadata that Iceberg readers open from now on; None for a dry run.
    """

    kind: str
    findings: tuple[Finding, ...]
    adopted_rows: int = 0
    adopted_files: int = 0
    version: int | None = None
    metadata_location: str | None = None


def adopt(store: LogStore, listing: MetadataListing, findings: Sequence[Finding], append: Append | None) -> Repair:
    """Append the other writer's rows to the Delta table.

    Args:
        listing: the listing of the table's folder that produced the findings.
        append: None for a dry run, which checks everything and writes nothing.

    Raises:
        Unsupported: the other writer did more than append; the message gives the reason.
        InvalidRequest: there are no rows to adopt.
        SchemaMismatch, InvariantViolation: the rows do not fit the table.
    """
    finding = _newest(store, findings)
    external = _opened(store, finding.location)
    _refuse_all_but_appends(store, listing, finding, external)
    rows = sum(snapshot.added_rows for snapshot in finding.snapshots)
    files = sum(len(snapshot.added_files or ()) for snapshot in finding.snapshots)
    version = None
    for snapshot in finding.snapshots if append is not None else ():
        assert append is not None
        # The snapshot's id serves as transaction id: a retry after a crash does not add the rows twice.
        version = append(
            _reader(external, snapshot),
            app=(f"tahoe-uniform-adopt-{snapshot.snapshot_id}", 0),
            user_metadata=f"adopted from {snapshot}",
        )
    return Repair("adopt", tuple(findings), rows, files, version)


def _newest(store: LogStore, findings: Sequence[Finding]) -> Finding:
    """Return the metadata file whose snapshots include those of all others."""
    candidates = [finding for finding in findings if finding.kind == "metadata" and finding.snapshots]
    missing = [finding for finding in findings if finding.kind == "missing"]
    if missing or not candidates:
        why = missing[0].sentence if missing else "no metadata file of another writer has a snapshot of its own"
        raise InvalidRequest(
            f"There are no rows to take over into table {store.url}: {why}. Rebuild the Iceberg side: "
            "tahoe uniform repair --discard.",
            code="TAHOE_UNIFORM_NOTHING_TO_ADOPT",
            table=store.url,
        )
    newest = max(candidates, key=lambda finding: len(finding.snapshots))
    ids = {snapshot.snapshot_id for snapshot in newest.snapshots}
    for candidate in candidates:
        if not ids >= {snapshot.snapshot_id for snapshot in candidate.snapshots}:
            raise Unsupported(
                f"Two writers have changed the Iceberg side of table {store.url} independently: {newest.location} and "
                f"{candidate.location}. Append the rows you need with a Delta writer, then run: tahoe uniform repair --discard.",
                code="TAHOE_UNIFORM_CANNOT_ADOPT",
                table=store.url,
            )
    return newest


def _opened(store: LogStore, url: str) -> ExternalTable:
    try:
        from tahoe.uniform.external.external_table import ExternalTable
    except ImportError as error:
        raise Unsupported(
            "Taking over rows needs PyIceberg: pip install 'tahoe-delta[iceberg]'.", code="TAHOE_LIBRARY_MISSING", table=store.url
        ) from error
    return ExternalTable(store, url)


def _refuse_all_but_appends(store: LogStore, listing: MetadataListing, finding: Finding, external: ExternalTable) -> None:
    for snapshot in finding.snapshots:
        if snapshot.operation != "append" or snapshot.deleted_rows or external.has_deletes(snapshot.snapshot_id):
            raise _refused(store, f"{snapshot} is not a plain append")
    theirs = json.loads(store.get(finding.location.removeprefix(f"{store.url}/")))
    ours = newest_own_metadata(store, listing)
    if ours is None:
        raise _refused(store, f"{finding.location} is older than the table's Iceberg side and not a change to it")
    _refuse_another_history(store, finding, theirs, {snapshot["snapshot-id"] for snapshot in ours.get("snapshots", ())})
    for key in _UNCHANGED:
        if _comparable(theirs.get(key)) != _comparable(ours.get(key)):
            raise _refused(store, f"{finding.location} differs from the table in '{key}'")


def _refuse_another_history(store: LogStore, finding: Finding, theirs: JsonMapping, ours: Collection[int]) -> None:
    """Raise for snapshots that do not descend from a snapshot of Tahoe's. They belong to an older table from which the Delta
    table may have been converted: adopting them would duplicate its rows."""
    parents = {snapshot["snapshot-id"]: snapshot.get("parent-snapshot-id") for snapshot in theirs.get("snapshots", ())}
    known_ids = {*ours, *(snapshot.snapshot_id for snapshot in finding.snapshots)}
    for snapshot in finding.snapshots:
        parent = parents.get(snapshot.snapshot_id)
        if parent not in known_ids and (parent is not None or ours):
            raise _refused(
                store, f"{snapshot} does not follow a snapshot of the table's Iceberg side: it belongs to another history"
            )


def _refused(store: LogStore, why: str) -> Unsupported:
    return Unsupported(
        f"The changes of another writer cannot be taken over into table {store.url}: {why}, and only rows appended to the Iceberg "
        "side can. Make the missing change with a Delta writer, then run: tahoe uniform repair --discard.",
        code="TAHOE_UNIFORM_CANNOT_ADOPT",
        table=store.url,
    )


def _comparable(value: object) -> Any:
    """Normalize schemas and specs for comparison: writers omit empty values and order keys freely."""
    if isinstance(value, dict):
        return {key: _comparable(part) for key, part in value.items() if part not in (None, [], {})}
    if isinstance(value, list):
        return [_comparable(part) for part in value]
    return value


def _reader(external: ExternalTable, snapshot: ExternalSnapshot) -> pa.RecordBatchReader:
    """Return the rows that a snapshot added, in the table's logical columns."""
    batches = external.rows(snapshot.snapshot_id)
    first = next(batches)
    rest = (batch.cast(first.schema) for batch in batches)
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], rest))
