"""Detection of changes that another writer made to the Iceberg side, with their snapshots, files and rows.

A conversion leaves ``v<N>.metadata.json`` with a fingerprint, a version hint, catalog pointers to that file, and a record on the
Delta side. Any commit by an Iceberg writer contradicts one of these: it adds a metadata file, moves a pointer, or deletes a file
of Tahoe's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tahoe.base.exceptions import CorruptTable, ForeignWriter, NotFound, TahoeError
from tahoe.base.json_values import JsonMapping, JsonObject
from tahoe.base.wording import counted
from tahoe.store.log_store import LogStore
from tahoe.uniform.catalogs.path_catalog import HINT
from tahoe.uniform.external.conversion_record import ConversionRecord
from tahoe.uniform.external.metadata_listing import MetadataListing, newest_metadata
from tahoe.uniform.formats.metadata_files import FOLDER, metadata_name, metadata_number

if TYPE_CHECKING:
    from tahoe.uniform.external.external_table import ExternalTable


_SUFFIX = ".metadata.json"
# A snapshot is reported even if its files cannot be listed.
_UNREADABLE = (TahoeError, ValueError, OSError)


@dataclass(frozen=True, slots=True)
class ExternalSnapshot:
    """A snapshot that Tahoe did not write.

    Args:
        operation: Iceberg's operation: ``append``, ``overwrite``, ``delete`` or ``replace``.
        engine: the engine named in the snapshot's summary, or None.
        added_rows, deleted_rows: row counts from the summary.
        added_files: URLs of the data files that the snapshot added; None if they cannot be read.
    """

    snapshot_id: int
    operation: str
    engine: str | None
    added_rows: int
    deleted_rows: int
    added_files: tuple[str, ...] | None

    def __str__(self) -> str:
        files = "" if self.added_files is None else f" in {counted(len(self.added_files), 'file')}"
        by = "" if self.engine is None else f" by {self.engine}"
        rows = counted(self.added_rows, "row")
        return f"snapshot {self.snapshot_id} ({self.operation}{by}: {rows} added{files}, {self.deleted_rows} deleted)"


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference between the Iceberg side and the state that Tahoe left.

    Args:
        kind: ``metadata`` (a metadata file that Tahoe did not write), ``missing`` (a metadata file of Tahoe's is gone), ``hint``
            or ``catalog`` (another writer moved or dropped a pointer).
        location: the file's URL, or the catalog's name.
        sentence: a description for the user.
        snapshots: the snapshots in the metadata file that Tahoe did not write.
    """

    kind: str
    location: str
    sentence: str
    snapshots: tuple[ExternalSnapshot, ...] = ()


def find_external_changes(
    store: LogStore, listing: MetadataListing, answers: Mapping[str, str | None], record: ConversionRecord
) -> list[Finding]:
    """Return every trace of another writer; an empty list if only Tahoe has written to the table.

    Args:
        listing: the table's folder ``metadata``.
        answers: catalog name → URL of the metadata that the catalog points to, None if the catalog does not know the table. Omit
            a catalog that did not answer: its pointer is checked again before it is moved.
    """
    strange = [name for name in listing.names if name.endswith(_SUFFIX) and metadata_number(name) is None]
    if listing.wrong is not None:
        strange.append(metadata_name(listing.numbers[0]))
    urls = [url for name in strange if (url := f"{store.url}/{name}") not in record.discarded]
    own_ids = _snapshot_ids(newest_own_metadata(store, listing)) if urls else frozenset()
    findings = [_of_metadata(store, url, own_ids) for url in urls]
    newest = -1 if listing.number is None else listing.number
    if newest < record.number and store.head(metadata_name(record.number)) is None:  # a listing may be stale
        location = f"{store.url}/{metadata_name(record.number)}"
        findings.append(Finding("missing", location, f"the metadata file {location}, which Tahoe wrote, is gone"))
    if HINT in listing.names:
        findings += _of_hint(store, newest)
    for catalog, answer in answers.items():
        findings += _of_catalog(store, catalog, answer, record)
    return findings


def external_writer_error(table: str, findings: Sequence[Finding], *, has_own_metadata: bool = True) -> ForeignWriter:
    """Return the error that stops a conversion, with the details ``snapshots``, ``files`` and ``rows``.

    Args:
        has_own_metadata: whether Tahoe has written metadata to the folder. If not, the other metadata is older than the Iceberg
            side: the Delta table may have been converted from it.
    """
    details = "; ".join(finding.sentence for finding in findings)
    snapshots = [snapshot for finding in findings for snapshot in finding.snapshots]
    return ForeignWriter(
        f"Another writer has changed the Iceberg side of the Delta table {table}, which is for reading only: {details}. None of it is in "
        "the Delta table, and nothing is converted until it is settled. "
        "Adopt appended rows with tahoe uniform repair --adopt, or discard the changes with tahoe uniform repair --discard."
        if has_own_metadata
        else f"The folder of the Delta table {table} has metadata of an Iceberg table that Tahoe did not write: {details}. If the "
        "Delta table was converted from it, all of its rows are in the Delta table, and an engine that still commits there writes to "
        "another table. Nothing is converted until you confirm that no engine does: tahoe uniform repair --discard. (Its files stay "
        "in place.)",
        table=table,
        locations=[finding.location for finding in findings],
        snapshots=[snapshot.snapshot_id for snapshot in snapshots],
        files=[file for snapshot in snapshots for file in snapshot.added_files or ()],
        rows=sum(snapshot.added_rows for snapshot in snapshots),
    )


def has_own_metadata(store: LogStore, listing: MetadataListing, record: ConversionRecord) -> bool:
    """Whether Tahoe has written an Iceberg side for the table: its record says so, or its metadata is there."""
    return record.number >= 0 or newest_own_metadata(store, listing) is not None


def newest_own_metadata(store: LogStore, listing: MetadataListing) -> JsonObject | None:
    """Return the newest metadata file that is unchanged since Tahoe wrote it, or None."""
    if listing.newest is not None:
        return listing.newest.document
    for number in listing.numbers[1:]:
        try:
            ours = newest_metadata(store, number)
        except (ForeignWriter, CorruptTable, NotFound):
            continue
        return None if ours is None else ours.document
    return None


def _snapshot_ids(document: JsonMapping | None) -> frozenset[int]:
    return frozenset(snapshot["snapshot-id"] for snapshot in (document or {}).get("snapshots", ()))


def _of_metadata(store: LogStore, url: str, own_ids: frozenset[int]) -> Finding:
    try:
        document = json.loads(store.get(url.removeprefix(f"{store.url}/")))
        unknown = [snapshot for snapshot in document["snapshots"] if snapshot["snapshot-id"] not in own_ids]
        table = _opened(store, url) if unknown else None
        snapshots = tuple(_snapshot(table, snapshot) for snapshot in unknown)
    except (ValueError, KeyError, TypeError, NotFound):
        return Finding("metadata", url, f"the metadata file {url} is not Tahoe's, and cannot be read")
    description = ", with " + ", ".join(map(str, snapshots)) if snapshots else ", with no snapshot of its own"
    return Finding("metadata", url, f"the metadata file {url} is not Tahoe's, or was edited{description}", snapshots)


def _opened(store: LogStore, url: str) -> ExternalTable | None:
    """Open the metadata with PyIceberg; None if PyIceberg is missing or cannot read it."""
    try:
        from tahoe.uniform.external.external_table import ExternalTable
    except ImportError:
        return None
    try:
        return ExternalTable(store, url)
    except _UNREADABLE:
        return None


def _snapshot(table: ExternalTable | None, snapshot: JsonMapping) -> ExternalSnapshot:
    summary = snapshot.get("summary") or {}
    engine = next((summary[key] for key in ("engine-name", "app-id", "spark.app.id") if key in summary), None)
    return ExternalSnapshot(
        int(snapshot["snapshot-id"]),
        str(summary.get("operation", "unknown")),
        None if engine is None else str(engine),
        int(summary.get("added-records", 0)),
        int(summary.get("deleted-records", 0)),
        _added_files(table, int(snapshot["snapshot-id"])),
    )


def _added_files(table: ExternalTable | None, snapshot_id: int) -> tuple[str, ...] | None:
    try:
        return None if table is None else tuple(table.added_files(snapshot_id))
    except _UNREADABLE:
        return None


def _of_hint(store: LogStore, newest: int) -> Iterator[Finding]:
    try:
        text = store.get(HINT).decode(errors="replace").strip()
    except NotFound:
        return
    # An empty hint misleads no reader. A hint ahead of the listing may belong to a conversion that has finished since.
    if not text or (text.isdecimal() and (int(text) <= newest or store.head(metadata_name(int(text))) is not None)):
        return
    url = f"{store.url}/{HINT}"
    yield Finding("hint", url, f"{url} says '{text[:100]}', where the newest metadata file has the number {newest}")


def _of_catalog(store: LogStore, name: str, location: str | None, record: ConversionRecord) -> Iterator[Finding]:
    if location is None:
        if name in record.catalogs:
            yield Finding("catalog", name, f"the catalog {name} no longer knows the table")
        return
    if location in record.discarded:
        return
    if location.rpartition("/")[0] != f"{store.url}/{FOLDER}" or metadata_number(location) is None:
        yield Finding("catalog", name, f"the catalog {name} points to {location}, which Tahoe did not write")
