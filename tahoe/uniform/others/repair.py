"""What to do about another writer on the Iceberg side: leave its changes out, or take its rows over into the Delta table.

Taken over are rows that were appended: they are read by their field ids and written by the table's own writer, so they pass every check
that a row of the table passes, and have statistics, ids and constraints as all others. The foreign files themselves are left to VACUUM.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.store.log_store import LogStore
from tahoe.uniform.others.foreign import Finding, ForeignSnapshot, newest_of_ours
from tahoe.uniform.others.look import Look

if TYPE_CHECKING:
    from tahoe.uniform.others.foreign_rows import ForeignTable

__all__ = ["Append", "Repair", "adopt"]

Append = Callable[..., int]
"""`Table.append`."""

_UNCHANGED = ("schemas", "current-schema-id", "partition-specs", "default-spec-id")


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did, or with a dry run would do.

    Args:
        kind: ``none`` (no other writer was at work), ``discard`` or ``adopt``.
        findings: what the other writer left.
        adopted_rows, adopted_files: of the snapshots that were taken over.
        version: the version of the Delta table that has the adopted rows; None where none were.
        metadata_location: what readers of Iceberg open from now on; None for a dry run.
    """

    kind: str
    findings: tuple[Finding, ...]
    adopted_rows: int = 0
    adopted_files: int = 0
    version: int | None = None
    metadata_location: str | None = None


def adopt(store: LogStore, look: Look, findings: Sequence[Finding], append: Append | None) -> Repair:
    """Take the appended rows over.

    Args:
        look: at the table's folder, by which the findings were made.
        append: None for a dry run: all is checked, and nothing is written.

    Raises:
        Unsupported: the other writer did more than append; the message says what.
        InvalidRequest: there is nothing to take over.
        SchemaMismatch, InvariantViolation: the rows are none of this table.
    """
    finding = _newest(store, findings)
    foreign = _opened(store, finding.location)
    _refuse_all_but_appends(store, look, finding, foreign)
    rows = sum(snapshot.added_rows for snapshot in finding.snapshots)
    files = sum(len(snapshot.added_files or ()) for snapshot in finding.snapshots)
    version = None
    for snapshot in finding.snapshots if append is not None else ():
        assert append is not None
        # The snapshot's id as the transaction's: tried again after a crash, the rows are not added twice.
        version = append(
            _reader(foreign, snapshot),
            app=(f"tahoe-uniform-adopt-{snapshot.snapshot_id}", 0),
            user_metadata=f"adopted from {snapshot}",
        )
    return Repair("adopt", tuple(findings), rows, files, version)


def _newest(store: LogStore, findings: Sequence[Finding]) -> Finding:
    """The metadata file whose snapshots include those of all others."""
    candidates = [finding for finding in findings if finding.kind == "metadata" and finding.snapshots]
    missing = [finding for finding in findings if finding.kind == "missing"]
    if missing or not candidates:
        why = missing[0].sentence if missing else "no metadata file of another writer holds a snapshot of its own"
        raise InvalidRequest(
            f"There are no rows to take over into table {store.url}: {why}. Build the Iceberg side anew: "
            "tahoe uniform repair --discard.",
            code="TAHOE_UNIFORM_NOTHING_TO_ADOPT",
            table=store.url,
        )
    newest = max(candidates, key=lambda finding: len(finding.snapshots))
    ids = {snapshot.snapshot_id for snapshot in newest.snapshots}
    for other in candidates:
        if not ids >= {snapshot.snapshot_id for snapshot in other.snapshots}:
            raise Unsupported(
                f"Two writers have changed the Iceberg side of table {store.url} apart from each other: {newest.location} and "
                f"{other.location}. Append what you need of them with a Delta writer, then: tahoe uniform repair --discard.",
                code="TAHOE_UNIFORM_CANNOT_ADOPT",
                table=store.url,
            )
    return newest


def _opened(store: LogStore, url: str) -> ForeignTable:
    try:
        from tahoe.uniform.others.foreign_rows import ForeignTable
    except ImportError as error:
        raise Unsupported(
            "Taking over rows needs PyIceberg: pip install 'tahoe-delta[iceberg]'.", code="TAHOE_LIBRARY_MISSING", table=store.url
        ) from error
    return ForeignTable(store, url)


def _refuse_all_but_appends(store: LogStore, look: Look, finding: Finding, foreign: ForeignTable) -> None:
    for snapshot in finding.snapshots:
        if snapshot.operation != "append" or snapshot.deleted_rows or foreign.has_deletes(snapshot.snapshot_id):
            raise _refused(store, f"{snapshot} is not a plain append")
    theirs = json.loads(store.get(finding.location.removeprefix(f"{store.url}/")))
    ours = newest_of_ours(store, look)
    if ours is None:
        raise _refused(store, f"{finding.location} was there before the table's Iceberg side, and is no change of it")
    _refuse_another_history(store, finding, theirs, {snapshot["snapshot-id"] for snapshot in ours.get("snapshots", ())})
    for key in _UNCHANGED:
        if _comparable(theirs.get(key)) != _comparable(ours.get(key)):
            raise _refused(store, f"{finding.location} has another value of '{key}' than the table")


def _refuse_another_history(store: LogStore, finding: Finding, theirs: Mapping[str, Any], ours: Collection[int]) -> None:
    """Raise for snapshots that do not follow one of ours. They are those of a table that was there before, from which the Delta table may
    have been converted: its rows would be there twice."""
    parents = {snapshot["snapshot-id"]: snapshot.get("parent-snapshot-id") for snapshot in theirs.get("snapshots", ())}
    known = {*ours, *(snapshot.snapshot_id for snapshot in finding.snapshots)}
    for snapshot in finding.snapshots:
        parent = parents.get(snapshot.snapshot_id)
        if parent not in known and (parent is not None or ours):
            raise _refused(store, f"{snapshot} does not follow a snapshot of the table's Iceberg side, but is of another history")


def _refused(store: LogStore, why: str) -> Unsupported:
    return Unsupported(
        f"The changes of another writer cannot be taken over into table {store.url}: {why}, and only rows that were appended to that side "
        "can. Make the change with a Delta writer where it is missing, then: tahoe uniform repair --discard.",
        code="TAHOE_UNIFORM_CANNOT_ADOPT",
        table=store.url,
    )


def _comparable(value: Any) -> Any:
    """Schemas and specs as sets of what matters: writers leave out what is empty, and order keys as they like."""
    if isinstance(value, dict):
        return {key: _comparable(part) for key, part in value.items() if part not in (None, [], {})}
    if isinstance(value, list):
        return [_comparable(part) for part in value]
    return value


def _reader(foreign: ForeignTable, snapshot: ForeignSnapshot) -> pa.RecordBatchReader:
    """The rows that a snapshot added, in the logical columns of the table."""
    batches = foreign.rows(snapshot.snapshot_id)
    first = next(batches)
    others = (batch.cast(first.schema) for batch in batches)
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], others))
