"""Brings the Iceberg side of a table from the version converted last to a target version.

The version converted last is what the newest ``metadata/v<N>.metadata.json`` says of itself, so a crash, a second process or a
retry needs no other memory. All files but that one are written under names that tell their content; it is put if absent. Whoever
loses that race reads the winner and is done, or goes on from there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tahoe.clock import SYSTEM_CLOCK, Clock
from tahoe.exceptions import CorruptTable, ForeignWriter, NotFound, StorageFailure, TahoeError
from tahoe.log.checksum import read_checksum
from tahoe.protocol.actions import Action
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import Created, Exists, LogStore, Unanswered
from tahoe.uniform.catalogs.catalog import PATH, Catalog, advance
from tahoe.uniform.catalogs.path_catalog import PathCatalog
from tahoe.uniform.catalogs.pointers import LOOK_SECONDS, Asked, Pointer
from tahoe.uniform.convert.build import Build
from tahoe.uniform.convert.garbage import orphans, unreferenced
from tahoe.uniform.convert.manifest_folder import ManifestFolder
from tahoe.uniform.convert.plan import DeltaCommit, FurtherCommits, Plan, Rebuild, plan_conversion
from tahoe.uniform.convert.slices import SliceEncoder
from tahoe.uniform.formats import metadata as documents
from tahoe.uniform.formats.metadata_files import metadata_name, metadata_number, seal_metadata
from tahoe.uniform.others.foreign import find_foreign, foreign_writer
from tahoe.uniform.others.look import Current, Look, look_at, newest_metadata, newest_number
from tahoe.uniform.others.record import ConversionRecord, read_record, write_record

__all__ = ["MAX_PENDING_COMMITS", "Conversion", "convert"]

logger = logging.getLogger(__name__)

MAX_PENDING_COMMITS = 1000
"""Farther behind than this the Iceberg side is built anew from the target's live files."""

_ATTEMPTS = 10
_STORAGE_ATTEMPTS = 5

ReadCommit = Callable[[int], Sequence[Action]]


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion did.

    Args:
        kind: ``none`` (the version was converted already), ``incremental`` or ``full``.
        version: the Delta version that the Iceberg side now speaks of; at least the target's.
        reason: why all was built anew, for ``full``.
        catalog_errors: catalogs whose pointer was not moved in time, with the error; the metadata by path is there all the same.
    """

    kind: str
    version: int
    metadata_location: str
    snapshots: int = 0
    files_added: int = 0
    files_removed: int = 0
    reason: str | None = None
    catalog_errors: dict[str, TahoeError] = field(default_factory=dict)


def convert(
    store: LogStore,
    target: Snapshot,
    snapshot_at: Callable[[int], Snapshot],
    read_commit: ReadCommit,
    pointers: Sequence[Pointer] = (),
    *,
    clock: Clock = SYSTEM_CLOCK,
    rebuild: bool = False,
    catalog_seconds: float = LOOK_SECONDS,
    slices: SliceEncoder | None = None,
) -> Conversion:
    """Make the Iceberg side speak of the target version, or a later one.

    Args:
        target: the version wanted.
        snapshot_at: an earlier version of the table; raises `NotFound` where the log no longer has it.
        read_commit: the actions of one commit; raises `NotFound` where the log no longer has it.
        pointers: those of catalogs, to be moved next to the one that readers by path use. A catalog that fails or does not answer is
            no matter to that one.
        rebuild: build all anew, even over metadata that another writer left.
        catalog_seconds: how long to wait for pointers to be moved; one that is not by then is moved when its catalog answers.
        slices: encodes the manifests of large tables; None where this process does.

    Raises:
        ForeignWriter: another writer has committed to the Iceberg side.
        Unsupported, CorruptTable: the table cannot be shown as Iceberg; the message says which column or file is in the way.
        StorageFailure: storage failed; the next conversion goes on from where the metadata stands.
    """
    asked = Asked(pointers)
    look = look_at(store)
    # A catalog that does not answer in time is looked at again before its pointer is moved.
    record = _without_foreign(store, look, asked.answers(LOOK_SECONDS)[0], rebuild)
    for attempt in range(_ATTEMPTS):
        current = None if rebuild else look.current()
        if current is not None and current.version >= target.version:
            done = Conversion("none", current.version, current.location)
            return _published(store, pointers, done, [], record, catalog_seconds, take_over=False)
        prepared = _prepare(store, current, look.number, target, snapshot_at, read_commit, clock, slices)
        if _put_metadata(store, prepared.number, prepared.data, clock):
            return _published(store, pointers, prepared.result, prepared.garbage, record, catalog_seconds, take_over=rebuild)
        logger.info("version %d of %s: another conversion was first; looking again", target.version, store.url)
        clock.sleep(0.05 * attempt * clock.random())
        look = look_at(store)
    raise StorageFailure(
        f"Version {target.version} of table {store.url} was not converted: other conversions were first {_ATTEMPTS} times. "
        "Run table.uniform.sync() again.",
        table=store.url,
        version=target.version,
    )


@dataclass(frozen=True, slots=True)
class _Prepared:
    number: int
    data: bytes
    result: Conversion
    garbage: list[str]


def _without_foreign(store: LogStore, look: Look, answers: Mapping[str, str | None], discard: bool) -> ConversionRecord:
    """The record of the last conversion, after a look for other writers: an error, or with `discard` a note that theirs does not count."""
    try:
        record = read_record(store)
    except CorruptTable:
        if not discard:
            raise
        record = ConversionRecord()
    findings = find_foreign(store, look, answers, record)
    if not findings:
        return record
    if not discard:
        raise foreign_writer(store.url, findings)
    theirs = {finding.location for finding in findings if finding.kind == "metadata"}
    return ConversionRecord(discarded=record.discarded | theirs)


def _prepare(
    store: LogStore,
    current: Current | None,
    newest: int | None,
    target: Snapshot,
    snapshot_at: Callable[[int], Snapshot],
    read_commit: ReadCommit,
    clock: Clock,
    slices: SliceEncoder | None,
) -> _Prepared:
    """Write everything but the metadata file itself."""
    folder = ManifestFolder(store)
    plan = _plan(folder, current, target, snapshot_at, read_commit)
    build, plan = _build(store, folder, current, target, plan, slices)
    document, old = documents.expired(_document(build), documents.snapshot_retention_ms(target.metadata.configuration))
    garbage = [folder.name(url) for url in unreferenced(folder, old, document)]
    if current is not None:
        document, dropped = documents.logged(document, current.document, current.location)
        garbage += map(folder.name, dropped)
    number = target.version if newest is None else max(target.version, newest + 1)
    result = Conversion(
        kind="full" if isinstance(plan, Rebuild) else "incremental",
        version=target.version,
        metadata_location=f"{store.url}/{metadata_name(number)}",
        snapshots=build.snapshots,
        files_added=build.files_added,
        files_removed=build.files_removed,
        reason=plan.reason if isinstance(plan, Rebuild) else None,
    )
    if result.kind == "full":
        garbage += orphans(store, document, clock.now_ms())
    return _Prepared(number, seal_metadata(document), result, garbage)


def _plan(
    folder: ManifestFolder,
    current: Current | None,
    target: Snapshot,
    snapshot_at: Callable[[int], Snapshot],
    read_commit: ReadCommit,
) -> Plan:
    if current is None:
        return Rebuild("there was no Iceberg metadata")
    behind = target.version - current.version
    if behind > MAX_PENDING_COMMITS:
        return Rebuild(f"the Iceberg side was {behind} versions behind")
    try:
        commits = [
            DeltaCommit(version, tuple(read_commit(version))) for version in range(current.version + 1, target.version + 1)
        ]
        changed = any(commit.metadata is not None for commit in commits)
        before = snapshot_at(current.version).metadata if changed else target.metadata
    except NotFound:
        return Rebuild(f"the log no longer has the commits after version {current.version}")
    return plan_conversion(before, target.metadata, commits, timestamp_ms=target.timestamp_ms, file_url=folder.file_url)


def _build(
    store: LogStore, folder: ManifestFolder, current: Current | None, target: Snapshot, plan: Plan, slices: SliceEncoder | None
) -> tuple[Build, Plan]:
    """The build after the plan was carried out, and the plan that was: damaged manifests of ours are replaced by a rebuild."""
    document = current.document if current else None
    if isinstance(plan, FurtherCommits):
        build = Build(store, folder, document)
        try:
            difference = _difference(store, target.version, build.follow(plan.changes))
            if difference is None:
                return build, plan
            logger.warning("version %d of %s: %s Building the Iceberg side anew.", target.version, store.url, difference)
            plan = Rebuild(difference)
        except (CorruptTable, NotFound) as error:
            if isinstance(error, CorruptTable) and error.code != "TAHOE_CORRUPT_ICEBERG_METADATA":
                raise
            logger.warning("version %d of %s: %s Building the Iceberg side anew.", target.version, store.url, error.message)
            plan = Rebuild(error.message)
    build = Build(store, folder, document, slices)
    build.rebuild(target)
    return build, plan


def _difference(store: LogStore, version: int, document: Mapping[str, Any]) -> str | None:
    """How the document's totals differ from the table's own checksum, None where they agree or there is no checksum.

    A writer that adds a file a second time without saying so, or names one file in two ways, is noticed here.
    """
    try:
        checksum = read_checksum(store, version)
    except CorruptTable:
        return None
    snapshot = documents.current_snapshot(document)
    if checksum is None or snapshot is None:
        return None
    ours = documents.data_totals(snapshot)
    theirs = (checksum.num_files, checksum.table_size_bytes)
    if ours == theirs:
        return None
    return f"It has {ours[0]} files of {ours[1]} bytes where the table's checksum has {theirs[0]} of {theirs[1]}."


def _document(build: Build) -> Mapping[str, Any]:
    assert build.document is not None
    return build.document


def _put_metadata(store: LogStore, number: int, data: bytes, clock: Clock) -> bool:
    """Whether the metadata file now holds our bytes; False where another conversion's hold the name."""
    name = metadata_name(number)
    error = ""
    for attempt in range(_STORAGE_ATTEMPTS):
        outcome = store.put_if_absent(name, data)
        if isinstance(outcome, Created):
            return True
        if isinstance(outcome, Exists):
            return store.get(name) == data
        error = outcome.error
        if isinstance(outcome, Unanswered) and store.head(name) is not None:
            return store.get(name) == data
        clock.sleep(0.1 * 2**attempt * clock.random())
    raise StorageFailure(
        f"Storage refused the Iceberg metadata {store.url}/{name} {_STORAGE_ATTEMPTS} times ({error}). "
        "The next conversion tries again.",
        table=store.url,
        file=name,
    )


def _published(
    store: LogStore,
    pointers: Sequence[Pointer],
    result: Conversion,
    garbage: Sequence[str],
    record: ConversionRecord,
    catalog_seconds: float,
    *,
    take_over: bool,
) -> Conversion:
    """Move the pointers, then delete what nothing names any more. Neither can undo the conversion."""
    location = result.metadata_location
    errors: dict[str, TahoeError] = {}
    try:
        _move(PathCatalog(store), store, location, record, take_over=take_over)
    except TahoeError as error:
        errors[PATH] = error
    run = partial(_move, store=store, location=location, record=record, take_over=take_over)
    moves = [(pointer, pointer.move(result.version, location, run, take_over=take_over)) for pointer in pointers]
    for pointer, future in moves:
        try:
            pointer.result(future, catalog_seconds)
        except TahoeError as error:
            errors[pointer.name] = error
    for name, why in errors.items():
        logger.error("version %d of %s: the catalog %s stays behind: %s", result.version, store.url, name, why)
    # One that was not moved in time may have been since the last conversion.
    registered = {pointer.name: shown for pointer in pointers if (shown := pointer.shown()) is not None}
    published = replace(
        record,
        number=max(record.number, metadata_number(location) or 0),
        catalogs={**record.catalogs, **registered},
    )
    if published != record:
        write_record(store, published)
    # Metadata of another writer that a catalog points to may go on from ours, and name what ours names no longer.
    if not any(isinstance(why, ForeignWriter) for why in errors.values()):
        _delete(store, garbage)
    return replace(result, catalog_errors=errors)


def _move(catalog: Catalog, store: LogStore, location: str, record: ConversionRecord, *, take_over: bool) -> None:
    """Point a catalog to `location`, or to newer metadata that another conversion has put meanwhile: where pointers are not compared,
    that one's may have been moved before ours."""
    is_known = catalog.name in record.catalogs
    advance(catalog, location, store.url, take_over=take_over, is_known=is_known)
    if not catalog.swaps and (newer := _newer(store, location)) is not None:
        advance(catalog, newer, store.url)


def _delete(store: LogStore, names: Sequence[str]) -> None:
    for name in names:
        try:
            store.delete(name)
        except TahoeError as error:
            logger.warning("%s/%s is no longer needed but could not be deleted: %s", store.url, name, error)


def _newer(store: LogStore, location: str) -> str | None:
    """The URL of newer metadata of ours, put by another conversion meanwhile."""
    try:
        number = newest_number(store)
        if number is None or number <= (metadata_number(location) or 0):
            return None
        current = newest_metadata(store, number)
    except TahoeError as error:
        logger.warning("%s: could not look for metadata newer than %s: %s", store.url, location, error)
        return None
    return current.location if current is not None else None
