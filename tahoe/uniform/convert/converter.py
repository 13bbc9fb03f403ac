"""Converts the Iceberg side of a table from the last converted version to a target version.

    check for other writers ─► plan (which commits, or a rebuild) ─► build (manifests, document) ─► put the metadata file ─► publish

The newest ``metadata/v<N>.metadata.json`` records the last converted version, so a crash, a second process or a retry needs no other
state. All other files have names derived from their content; the metadata file is put if absent. A process that loses this race reads
the file that exists and stops, or continues from it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tahoe.base.clock import Clock
from tahoe.base.events import happened
from tahoe.base.exceptions import CorruptTable, NotFound, StorageFailure
from tahoe.base.json_values import JsonMapping
from tahoe.base.log_fields import about
from tahoe.base.progress import Progress, silent, tracked
from tahoe.base.wording import counted
from tahoe.log.checksum import read_checksum
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import Created, Exists, LogStore, Unanswered
from tahoe.uniform.catalogs.pointers import LOOK_SECONDS, CatalogQueries, Pointer
from tahoe.uniform.convert.build import Build
from tahoe.uniform.convert.conversion import Conversion, DeltaSide
from tahoe.uniform.convert.manifest_caches import ManifestCaches
from tahoe.uniform.convert.manifest_folder import ManifestFolder
from tahoe.uniform.convert.plan import DeltaCommit, FurtherCommits, Plan, Rebuild, plan_conversion
from tahoe.uniform.convert.publish import Publication, publish
from tahoe.uniform.convert.shards import ShardEncoder
from tahoe.uniform.external.conversion_record import ConversionRecord, read_record
from tahoe.uniform.external.external_changes import external_writer_error, find_external_changes, has_own_metadata
from tahoe.uniform.external.metadata_listing import CurrentMetadata, MetadataListing, list_metadata
from tahoe.uniform.external.recent_versions import LATELY_MS
from tahoe.uniform.formats import metadata as documents
from tahoe.uniform.formats.manifest_schema import DATA
from tahoe.uniform.formats.manifests import ManifestFile
from tahoe.uniform.formats.metadata_files import FOLDER, metadata_bytes, metadata_name

logger = logging.getLogger(__name__)

MAX_PENDING_COMMITS = 1000
"""If the Iceberg side is farther behind than this, it is rebuilt from the target's live files."""

_ATTEMPTS = 10
_STORAGE_ATTEMPTS = 5
GRACE_MS = 24 * 60 * 60 * 1000
"""Minimum age of an orphan: a conversion in progress has files that nothing references yet."""

_OURS = re.compile(r"(m\d+-\d+-|d\d+-\d+-|snap-\d+-|deletes\d+-|dv\d+-)[0-9a-f]+\.(avro|parquet|puffin)")


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A conversion whose files are all written except the metadata file."""

    number: int
    data: bytes
    result: Conversion
    garbage: list[str]


class Converter:
    """Conversions of one table.

    Args:
        caches: caches of the table's manifests.
        shards: encodes the manifests of large tables in other processes; None to encode them in this process.
    """

    def __init__(self, delta: DeltaSide, caches: ManifestCaches | None = None, shards: ShardEncoder | None = None) -> None:
        self._delta = delta
        self._store = delta.iceberg_store
        self._folder = ManifestFolder(self._store, caches, delta.store)
        self._shards = shards

    def convert(
        self,
        target: Snapshot,
        pointers: Sequence[Pointer] = (),
        *,
        rebuild: bool = False,
        catalog_seconds: float = LOOK_SECONDS,
        progress: Progress = silent,
    ) -> Conversion:
        """Convert the target version, or a later one.

        Args:
            target: the version to convert.
            pointers: pointers of catalogs, moved in addition to the hint for readers by path. A catalog that fails or does not answer
                does not affect the hint.
            rebuild: rebuild everything, even over metadata that another writer left.
            catalog_seconds: how long to wait for pointers to be moved; a slower one is moved when its catalog answers.
            progress: receives the number of files converted for a rebuild, else of commits read and snapshots written.

        Raises:
            ForeignWriter: another writer has committed to the Iceberg side.
            Unsupported, CorruptTable: the table cannot be shown as Iceberg; the message names the column or file.
            StorageFailure: storage failed; the next conversion continues from the existing metadata.
        """
        store, clock = self._store, self._delta.clock
        # A concurrent conversion moves a pointer, then records it: an answer older than the record would lack a recorded pointer.
        record = _last_conversion(store, rebuild)
        queries = CatalogQueries(pointers)
        listing = list_metadata(store)
        # A catalog that does not answer in time is queried again before its pointer is moved.
        record = _check_external_changes(store, listing, queries.answers(LOOK_SECONDS)[0], record, rebuild)
        for attempt in range(_ATTEMPTS):
            current = None if rebuild else listing.current()
            if current is not None and current.version >= target.version:
                done = Conversion("none", current.version, current.location)
                return publish(store, pointers, Publication(done, record), catalog_seconds)
            prepared = self._prepare(current, listing.number, target, progress)
            if _put_metadata(store, prepared.number, prepared.data, clock):
                publication = Publication(prepared.result, record, prepared.garbage, take_over=rebuild)
                return publish(store, pointers, publication, catalog_seconds)
            happened("retry", self._delta.url, target.version, operation="convert", attempts=attempt + 1)
            # Jitter, so that colliding conversions do not retry in lockstep.
            clock.sleep(0.05 * attempt * clock.random())
            listing = list_metadata(store)
        raise StorageFailure(
            f"Version {target.version} of table {self._delta.url} was not converted: other conversions were first {_ATTEMPTS} times. "
            "Run table.uniform.sync() again.",
            code="DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED",
            table=self._delta.url,
            version=target.version,
        )

    def _prepare(self, current: CurrentMetadata | None, newest: int | None, target: Snapshot, progress: Progress) -> _Prepared:
        """Write everything but the metadata file itself.

        Args:
            current: the current metadata; None for a rebuild.
            newest: the highest number of any metadata file.
        """
        store, folder = self._store, self._folder
        plan = self._plan(current, target, progress)
        build, plan = self._execute(plan, current, target, progress)
        retention_ms = max(documents.snapshot_retention_ms(target.metadata.configuration), LATELY_MS)
        document, old = documents.expired(build.finished(), retention_ms)
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
            garbage += orphans(store, folder, document, self._delta.clock.now_ms())
        return _Prepared(number, metadata_bytes(document), result, garbage)

    def _plan(self, current: CurrentMetadata | None, target: Snapshot, progress: Progress) -> Plan:
        if current is None:
            return self._first_plan(target)
        behind = target.version - current.version
        if behind > MAX_PENDING_COMMITS:
            return Rebuild(f"the Iceberg side was {counted(behind, 'version')} behind")
        try:
            commits = [
                DeltaCommit(version, tuple(self._delta.read_commit(version)))
                for version in tracked(range(current.version + 1, target.version + 1), progress, "commits read")
            ]
            changed = any(commit.metadata is not None for commit in commits)
            before = self._delta.snapshot_at(current.version).metadata if changed else target.metadata
        except NotFound:
            return Rebuild(f"the log no longer has the commits after version {current.version}")
        return plan_conversion(before, target.metadata, commits, timestamp_ms=target.timestamp_ms, file_url=self._folder.file_url)

    def _first_plan(self, target: Snapshot) -> Plan:
        """Plan the first conversion: a table that an Iceberg client created has the client's first snapshot, or none."""
        if target.version == 0:
            commit = DeltaCommit(0, tuple(self._delta.read_commit(0)))
            if commit.client is not None or commit.is_created_by_client:
                metadata, at = target.metadata, target.timestamp_ms
                return plan_conversion(metadata, metadata, [commit], timestamp_ms=at, file_url=self._folder.file_url)
        return Rebuild("there was no Iceberg metadata")

    def _execute(self, plan: Plan, current: CurrentMetadata | None, target: Snapshot, progress: Progress) -> tuple[Build, Plan]:
        """Carry out the plan; return the build and the plan used: corrupt manifests of Tahoe's are replaced by a rebuild."""
        store, folder = self._delta.store, self._folder
        document = current.document if current else None
        if isinstance(plan, FurtherCommits):
            build = Build(store, folder, document)
            try:
                difference = _difference(
                    store, target.version, build.follow(tracked(plan.changes, progress, "snapshots written"))
                )
                if difference is None:
                    return build, plan
                _log_rebuild(target, difference)
                plan = Rebuild(difference)
            except (CorruptTable, NotFound) as error:
                if isinstance(error, CorruptTable) and error.code != "TAHOE_CORRUPT_ICEBERG_METADATA":
                    raise
                _log_rebuild(target, error.message)
                plan = Rebuild(error.message)
        build = Build(store, folder, document, self._shards, progress)
        build.rebuild(target)
        return build, plan


def _log_rebuild(target: Snapshot, reason: str) -> None:
    version, url = target.version, target.store.url
    logger.warning("version %d of %s: %s Rebuilding the Iceberg side.", version, url, reason, extra=about(url, version))


def _last_conversion(store: LogStore, discard: bool) -> ConversionRecord:
    """Return the record of the last conversion; with `discard`, an empty one if it is corrupt."""
    try:
        return read_record(store)
    except CorruptTable:
        if not discard:
            raise
        return ConversionRecord()


def _check_external_changes(
    store: LogStore, listing: MetadataListing, answers: Mapping[str, str | None], record: ConversionRecord, discard: bool
) -> ConversionRecord:
    """Return the record. Raises if another writer was found; with `discard`, records its metadata as discarded."""
    findings = find_external_changes(store, listing, answers, record)
    if not findings:
        return record
    if not discard:
        raise external_writer_error(store.url, findings, has_own_metadata=has_own_metadata(store, listing, record))
    theirs = {finding.location for finding in findings if finding.kind == "metadata"}
    return ConversionRecord(discarded=record.discarded | theirs)


def _difference(store: LogStore, version: int, document: JsonMapping) -> str | None:
    """Return how the document's totals differ from the table's checksum; None if they agree or there is no checksum.

    Detects a writer that adds a file twice without saying so, or names one file in two ways.
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


def _put_metadata(store: LogStore, number: int, data: bytes, clock: Clock) -> bool:
    """Put the metadata file. Returns whether it now has our bytes; False if another conversion took the name."""
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
        code="DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED",
        table=store.url,
        file=name,
    )


def unreferenced(folder: ManifestFolder, old: Sequence[JsonMapping], document: JsonMapping) -> list[str]:
    """Return the URLs of manifest lists, manifests and delete files that only expired snapshots reference. Data files are never among
    them: they belong to the Delta table, and VACUUM deletes them.

    In a linear history, a file that a snapshot drops never comes back. So a file that the oldest retained snapshot does not reference is
    referenced by no retained snapshot. After a rollback, the lists of all retained snapshots are read.

    Args:
        old: the expired snapshots, oldest first.
        document: the document with the retained snapshots.
    """
    if not old:
        return []
    is_linear = documents.is_linear([*old, *document["snapshots"]])
    oldest = document["snapshots"][: 1 if is_linear else None]
    retained = {
        manifest.path: manifest for snapshot in oldest for manifest in folder.read_list(snapshot["manifest-list"])
    }.values()
    retained_paths = {manifest.path for manifest in retained}
    garbage: dict[str, None] = {}
    gone: dict[str, ManifestFile] = {}
    all_along: set[str] = set()
    for position, snapshot in enumerate(old):
        try:
            manifests = folder.read_list(snapshot["manifest-list"])
        except NotFound:  # deleted by an earlier attempt
            continue
        if position == 0 and is_linear:
            all_along = {manifest.path for manifest in manifests}
        gone.update({manifest.path: manifest for manifest in manifests if manifest.path not in retained_paths})
        garbage[snapshot["manifest-list"]] = None
    # A delete file still in use has moved to a manifest younger than the first of the expired snapshots.
    dropped = _delete_files(folder, gone.values())
    if dropped:
        dropped -= _delete_files(folder, (manifest for manifest in retained if manifest.path not in all_along))
    return [*garbage, *gone, *sorted(dropped)]


def orphans(store: LogStore, folder: ManifestFolder, document: JsonMapping, now_ms: int) -> list[str]:
    """Return the names of files in ``metadata`` that Tahoe wrote, that no snapshot references, and that are older than `GRACE_MS`: a crash
    left them behind.

    Reads every manifest list, and every delete manifest.
    """
    old = [
        entry
        for entry in store.list_from(FOLDER)
        if entry.modified_ms < now_ms - GRACE_MS and _OURS.fullmatch(entry.name.removeprefix(f"{FOLDER}/"))
    ]
    if not old:
        return []
    lists = [snapshot["manifest-list"] for snapshot in document["snapshots"]]
    manifests = {manifest.path: manifest for url in lists for manifest in folder.read_list(url)}
    named = {*lists, *manifests, *_delete_files(folder, manifests.values())}
    return [entry.name for entry in old if folder.url(entry.name) not in named]


def _delete_files(folder: ManifestFolder, manifests: Iterable[ManifestFile]) -> set[str]:
    """Return the delete files of the live entries in these manifests."""
    urls: set[str] = set()
    for manifest in manifests:
        if manifest.content != DATA:
            with suppress(NotFound):  # deleted by an earlier attempt
                urls |= folder.delete_files_of(manifest)
    return urls
