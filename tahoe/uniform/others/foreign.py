"""What another writer has done to the Iceberg side: looked for before every conversion, and told with snapshots, files and rows.

A conversion of ours leaves ``v<N>.metadata.json`` with a fingerprint, a hint and catalogs that point to such a file, and a record on the
Delta side. Whatever an Iceberg writer does breaks one of these: it adds a metadata file of its own, moves a pointer, or takes away ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tahoe.exceptions import CorruptTable, ForeignWriter, NotFound, TahoeError
from tahoe.store.log_store import LogStore
from tahoe.uniform.catalogs.path_catalog import HINT
from tahoe.uniform.formats.metadata_files import FOLDER, metadata_name, metadata_number
from tahoe.uniform.others.look import Look, newest_metadata
from tahoe.uniform.others.record import ConversionRecord
from tahoe.wording import counted

if TYPE_CHECKING:
    from tahoe.uniform.others.foreign_rows import ForeignTable

__all__ = ["Finding", "ForeignSnapshot", "find_foreign", "foreign_writer", "has_ours", "newest_of_ours"]

_SUFFIX = ".metadata.json"
# A snapshot counts, whether or not its files can be listed.
_UNREADABLE = (TahoeError, ValueError, OSError)


@dataclass(frozen=True, slots=True)
class ForeignSnapshot:
    """A snapshot that Tahoe did not make.

    Args:
        operation: Iceberg's: ``append``, ``overwrite``, ``delete`` or ``replace``.
        engine: as the snapshot's summary names it; None where it does not.
        added_rows, deleted_rows: by the summary.
        added_files: URLs of the data files that it added; None where they cannot be read.
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
    """One thing on the Iceberg side that is not as Tahoe left it.

    Args:
        kind: ``metadata`` (a metadata file that Tahoe did not write), ``missing`` (one that it did write is gone), ``hint`` or
            ``catalog`` (a pointer that another has moved or dropped).
        location: the file's URL, or the catalog's name.
        sentence: what is wrong, for a person.
        snapshots: what the metadata file holds that Tahoe did not make.
    """

    kind: str
    location: str
    sentence: str
    snapshots: tuple[ForeignSnapshot, ...] = ()


def find_foreign(store: LogStore, look: Look, answers: Mapping[str, str | None], record: ConversionRecord) -> list[Finding]:
    """All traces of another writer, none on a table where only Tahoe was at work.

    Args:
        look: at the table's folder.
        answers: of the catalogs in which the table is kept, next to the folder itself: name → URL of the metadata that it points to,
            None where it does not know the table. One that has not answered is left out: it is looked at again when its pointer is to
            be moved.
    """
    strange = [name for name in look.names if name.endswith(_SUFFIX) and metadata_number(name) is None]
    if look.wrong is not None:
        strange.append(metadata_name(look.numbers[0]))
    urls = [url for name in strange if (url := f"{store.url}/{name}") not in record.discarded]
    known = _snapshot_ids(newest_of_ours(store, look)) if urls else frozenset()
    findings = [_of_metadata(store, url, known) for url in urls]
    newest = -1 if look.number is None else look.number
    if newest < record.number and store.head(metadata_name(record.number)) is None:  # a listing may be behind
        location = f"{store.url}/{metadata_name(record.number)}"
        findings.append(Finding("missing", location, f"the metadata file {location}, which Tahoe wrote, is gone"))
    if HINT in look.names:
        findings += _of_hint(store, newest)
    for catalog, answer in answers.items():
        findings += _of_catalog(store, catalog, answer, record)
    return findings


def foreign_writer(table: str, findings: Sequence[Finding], *, has_ours: bool = True) -> ForeignWriter:
    """The error that stops a conversion; its facts hold ``snapshots``, ``files`` and ``rows``.

    Args:
        has_ours: whether there is metadata of Tahoe's own, on top of which another may have written. Else it was there before: the Delta
            table may have been converted from it.
    """
    what = "; ".join(finding.sentence for finding in findings)
    snapshots = [snapshot for finding in findings for snapshot in finding.snapshots]
    return ForeignWriter(
        f"Another writer has changed the Iceberg side of the Delta table {table}, which is for reading only: {what}. None of it is in "
        "the Delta table, and nothing is converted until it is settled. "
        "Take over rows that were appended: tahoe uniform repair --adopt; or leave the changes out: tahoe uniform repair --discard."
        if has_ours
        else f"The folder of the Delta table {table} has metadata of an Iceberg table that Tahoe did not write: {what}. Where the Delta "
        "table was converted from it, all of its rows are in the Delta table; an engine that still commits there does so to another table. "
        "Nothing is converted until you have seen to it that none does, and said so: tahoe uniform repair --discard. (Its files stay where "
        "they are.)",
        table=table,
        locations=[finding.location for finding in findings],
        snapshots=[snapshot.snapshot_id for snapshot in snapshots],
        files=[file for snapshot in snapshots for file in snapshot.added_files or ()],
        rows=sum(snapshot.added_rows for snapshot in snapshots),
    )


def has_ours(store: LogStore, look: Look, record: ConversionRecord) -> bool:
    """Whether Tahoe has made an Iceberg side of the table: its record says so, or there is metadata of it."""
    return record.number >= 0 or newest_of_ours(store, look) is not None


def newest_of_ours(store: LogStore, look: Look) -> dict[str, Any] | None:
    """The newest metadata file that is as Tahoe wrote it; None where there is none."""
    if look.newest is not None:
        return look.newest.document
    for number in look.numbers[1:]:
        try:
            ours = newest_metadata(store, number)
        except (ForeignWriter, CorruptTable, NotFound):
            continue
        return None if ours is None else ours.document
    return None


def _snapshot_ids(document: Mapping[str, Any] | None) -> frozenset[int]:
    return frozenset(snapshot["snapshot-id"] for snapshot in (document or {}).get("snapshots", ()))


def _of_metadata(store: LogStore, url: str, known: frozenset[int]) -> Finding:
    try:
        document = json.loads(store.get(url.removeprefix(f"{store.url}/")))
        unknown = [snapshot for snapshot in document["snapshots"] if snapshot["snapshot-id"] not in known]
        table = _opened(store, url) if unknown else None
        snapshots = tuple(_snapshot(table, snapshot) for snapshot in unknown)
    except (ValueError, KeyError, TypeError, NotFound):
        return Finding("metadata", url, f"the metadata file {url} is not Tahoe's, and cannot be read")
    told = ", with " + ", ".join(map(str, snapshots)) if snapshots else ", with no snapshot of its own"
    return Finding("metadata", url, f"the metadata file {url} is not Tahoe's, or was edited{told}", snapshots)


def _opened(store: LogStore, url: str) -> ForeignTable | None:
    """What the metadata refers to; None without PyIceberg, or where that cannot make sense of it."""
    try:
        from tahoe.uniform.others.foreign_rows import ForeignTable
    except ImportError:
        return None
    try:
        return ForeignTable(store, url)
    except _UNREADABLE:
        return None


def _snapshot(table: ForeignTable | None, snapshot: Mapping[str, Any]) -> ForeignSnapshot:
    summary = snapshot.get("summary") or {}
    engine = next((summary[key] for key in ("engine-name", "app-id", "spark.app.id") if key in summary), None)
    return ForeignSnapshot(
        int(snapshot["snapshot-id"]),
        str(summary.get("operation", "unknown")),
        None if engine is None else str(engine),
        int(summary.get("added-records", 0)),
        int(summary.get("deleted-records", 0)),
        _added_files(table, int(snapshot["snapshot-id"])),
    )


def _added_files(table: ForeignTable | None, snapshot_id: int) -> tuple[str, ...] | None:
    try:
        return None if table is None else tuple(table.added_files(snapshot_id))
    except _UNREADABLE:
        return None


def _of_hint(store: LogStore, newest: int) -> Iterator[Finding]:
    try:
        text = store.get(HINT).decode(errors="replace").strip()
    except NotFound:
        return
    # An empty hint leads nobody astray. One that is ahead of the listing may be of a conversion that ended since.
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
