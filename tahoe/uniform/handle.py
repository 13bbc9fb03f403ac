"""`Table.uniform`, the handle of a table's Iceberg side (status, wait, sync, repair), and the post-commit hook that starts conversions.

`status` defines the status, `convert.converter` the conversion.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.events import Fields, observed
from tahoe.base.exceptions import ForeignWriter, InvalidRequest, StorageFailure, TahoeError, Unsupported
from tahoe.base.log_fields import about
from tahoe.base.progress import Progress, shown, silent
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.protocol.iceberg_upgrade import Upgrade
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.commit import Committed
from tahoe.uniform.catalogs.catalog import PATH, Catalog
from tahoe.uniform.catalogs.pointers import LOOK_SECONDS, CatalogQueries, Pointer
from tahoe.uniform.convert.conversion import Conversion, DeltaSide
from tahoe.uniform.convert.converter import Converter
from tahoe.uniform.external.conversion_record import read_record
from tahoe.uniform.external.external_changes import Finding, find_external_changes
from tahoe.uniform.external.metadata_listing import (
    CurrentMetadata,
    MetadataListing,
    list_metadata,
    newest_metadata,
    newest_number,
)
from tahoe.uniform.external.repair import Append, Repair
from tahoe.uniform.external.repair import adopt as adopt_rows
from tahoe.uniform.runtime import LastError, UniformRuntime
from tahoe.uniform.status import UniformStatus, status_of

logger = logging.getLogger(__name__)

SYNC_SECONDS = 60.0
"""How long `UniformHandle.sync` waits for catalogs by default."""

_POLL_SECONDS = 0.02


@checked_arguments
class UniformHandle:
    """The Iceberg side of one table.

    Args:
        delta: the table's Delta side.
        runtime: the state that all conversions share.
        append: `Table.append`, for rows of another writer that a repair adopts.
        run_upgrade: implements `upgrade`; takes the compatibility version and whether this is a dry run.
    """

    def __init__(
        self,
        delta: DeltaSide,
        runtime: UniformRuntime,
        append: Append | None = None,
        run_upgrade: Callable[[int, bool], Upgrade] | None = None,
    ) -> None:
        self._delta = delta
        self._store = delta.store
        self._iceberg = delta.iceberg_store
        self._runtime = runtime
        self._conversions = _Conversions(delta, runtime)
        self._append = append
        self._run_upgrade = run_upgrade

    def __repr__(self) -> str:
        return f"UniformHandle({self._store.url})"

    def status(self, *, catalog_seconds: float | None = None) -> UniformStatus:
        """Return the progress of the Iceberg side; reads its newest metadata file and the newest Delta version.

        Never raises for a problem on the Iceberg side: that becomes the status's `last_error`.

        Args:
            catalog_seconds: how long to wait for the catalogs to answer. None does not ask them: the status then repeats the record of
                the last conversion.
        """
        return status_of(self._store, self._delta.snapshot_at(), self._runtime, catalog_seconds, self._iceberg)

    def upgrade(self, compat_version: int = 2, *, dry_run: bool = False) -> Upgrade:
        """Make the table readable as Iceberg, as REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n)) does.

        Sets the properties, and rewrites files that Iceberg readers could misread.

        Args:
            compat_version: the IcebergCompat version: 1, 2, or 3 (Iceberg format 3, with deletion vectors and row lineage).
            dry_run: report the changes without making them.

        Raises:
            InvalidRequest: the table uses something that Iceberg does not support (``DELTA_ICEBERG_COMPAT_VIOLATION.…``).
            Unsupported: the handle was created without a table.
        """
        if self._run_upgrade is None:
            raise Unsupported(
                f"{self!r} can only read the table; use Table.uniform.upgrade().",
                code="TAHOE_UNIFORM_HANDLE_WITHOUT_TABLE",
                table=self._store.url,
            )
        return self._run_upgrade(compat_version, dry_run)

    def sync(self, catalog: Catalog | str | None = None, *, rebuild: bool = False, timeout: float = SYNC_SECONDS) -> Conversion:
        """Convert the newest version now, in this thread.

        Args:
            catalog: an additional catalog whose pointer to move, or its name ``<catalog>:<namespace>.<table>``.
            rebuild: rebuild everything from the live files, also over metadata that another writer left on the Iceberg side.
            timeout: seconds to wait for catalogs after readers by path have the new metadata. A catalog passed as an object is waited for
                without limit.

        Raises:
            InvalidRequest: UniForm is not enabled on the table.
            ForeignWriter: another writer has committed to the Iceberg side.
            StorageFailure: storage or a catalog failed, or a catalog did not answer.
        """
        target = self._newest()
        extra = []
        if isinstance(catalog, str):
            extra = [self._runtime.pointer(self._store.url, self._runtime.catalogs.named(catalog))]
        elif catalog is not None:
            extra = [self._runtime.pointer(self._store.url, catalog, here=True)]
        with shown(self._delta.clock) as progress:
            result = self._conversions.run(target, extra, rebuild=rebuild, catalog_seconds=timeout, progress=progress)
        for error in result.catalog_errors.values():
            raise error
        return result

    def repair(self, *, adopt: bool = False, discard: bool = False, dry_run: bool = False) -> Repair:
        """Settle the changes that another writer made to the Iceberg side.

        Args:
            adopt: append the other writer's rows to the Delta table, then convert.
            discard: ignore its changes. Its files stay in place.
            dry_run: check and report without changing anything.

        Raises:
            InvalidRequest: not exactly one of `adopt` and `discard` is set, or there is nothing to adopt.
            Unsupported: the other writer did more than append.
        """
        if adopt == discard:
            raise InvalidRequest(
                "Pass either adopt=True (adopt appended rows) or discard=True (discard the changes).",
                code="TAHOE_UNIFORM_REPAIR_AMBIGUOUS",
                table=self._store.url,
            )
        listing, findings = self._findings()
        if not findings:
            return Repair("none", ())
        done = Repair("discard", tuple(findings))
        if adopt:
            done = adopt_rows(self._store, listing, findings, None if dry_run else self._append)
        if dry_run:
            return done
        return replace(done, metadata_location=self.sync(rebuild=True).metadata_location)

    def foreign_changes(self) -> list[tuple[str, str]]:
        """Return the changes of another writer to the Iceberg side as (description, location); changes nothing.

        Checks the folder, the catalogs and Tahoe's own record. Raises `InvalidRequest` if UniForm is not enabled on the table.
        """
        return [(f"{finding.sentence}. Settle it: tahoe uniform repair.", finding.location) for finding in self._findings()[1]]

    def start(self, target: Snapshot | None = None) -> int:
        """Convert the newest version in the background, as after a commit, and return that version. `wait` waits for it.

        Does nothing if the same version is already queued or converted.

        Args:
            target: the version to convert, with UniForm enabled; None reads the newest.

        Raises:
            InvalidRequest: UniForm is not enabled on the table.
        """
        target = self._newest() if target is None else target
        self._conversions.submit(target)
        return target.version

    def wait(self, version: int | None = None, timeout: float = 60.0) -> UniformStatus:
        """Wait until the Iceberg side shows a version (the newest if None), whichever process converts it.

        Args:
            timeout: seconds.

        Raises:
            StorageFailure: the version is not shown within `timeout` seconds, or this process failed to convert it; the message has the
                reason.
        """
        self.metadata_of(self._delta.snapshot_at().version if version is None else version, timeout)
        return self.status()

    def metadata_of(self, target: int, timeout: float) -> CurrentMetadata:
        """Return metadata that shows a version or a later one; waits for it, and raises, as `wait` does."""
        deadline = self._delta.clock.now_ms() + timeout * 1000
        number = None
        while True:
            busy = self._runtime.queue.is_busy(self._store.url)
            newest = newest_number(self._iceberg)
            if newest is not None and newest != number and newest >= target:  # a file's number is at least its version
                number, current = newest, newest_metadata(self._iceberg)
                if current is not None and current.version >= target:
                    return current
            error = self._runtime.errors.get(self._store.url)
            if error is not None and not busy and error.version >= target:
                raise self._not_shown(target, f"the conversion failed: {error.message}")
            if self._delta.clock.now_ms() >= deadline:
                raise self._not_shown(target, f"{timeout:.0f} seconds have passed")
            if not busy or not self._runtime.queue.drain(_POLL_SECONDS, self._store.url):
                self._delta.clock.sleep(_POLL_SECONDS)

    def _findings(self) -> tuple[MetadataListing, list[Finding]]:
        pointers = self._conversions.pointers(self._newest())
        # Before the catalogs are queried: see `tahoe.uniform.convert.converter`.
        record, queries = read_record(self._iceberg), CatalogQueries(pointers)
        listing = list_metadata(self._iceberg)
        return listing, find_external_changes(self._iceberg, listing, queries.answers(LOOK_SECONDS)[0], record)

    def _newest(self) -> Snapshot:
        """Return the newest version of a table with UniForm enabled."""
        target = self._delta.snapshot_at()
        if not uniform_is_enabled(target.config.properties):
            raise InvalidRequest(
                f"UniForm is not enabled on table {self._store.url}. Set delta.universalFormat.enabledFormats = iceberg, "
                "delta.enableIcebergCompatV2 = true and delta.columnMapping.mode = name.",
                code="DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED",
                table=self._store.url,
            )
        return target

    def _not_shown(self, version: int, why: str) -> StorageFailure:
        remedy = "Run table.uniform.sync()." if self._delta.metadata_store is None else "Try again."
        return StorageFailure(
            f"The Iceberg side of table {self._store.url} does not show version {version}: {why}. {remedy}",
            code="DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED",
            table=self._store.url,
            version=version,
        )


def after_commit(delta: DeltaSide, runtime: UniformRuntime) -> Callable[[Committed], None]:
    """Return the post-commit hook, which converts the committed version in the background if UniForm is enabled on the table."""
    conversions = _Conversions(delta, runtime)

    def hook(committed: Committed) -> None:
        if uniform_is_enabled(committed.snapshot.config.properties):
            conversions.submit(committed.snapshot)

    return hook


def _fields(result: Conversion) -> Fields:
    return {
        "kind": result.kind,
        "snapshots": result.snapshots,
        "files_added": result.files_added,
        "files_removed": result.files_removed,
        "catalog_errors": len(result.catalog_errors),
    }


@dataclass(frozen=True, slots=True)
class _Conversions:
    """Converts one table and records the outcome."""

    delta: DeltaSide
    runtime: UniformRuntime

    def pointers(self, target: Snapshot) -> list[Pointer]:
        return self.runtime.pointers(self.delta.url, target.metadata.configuration)

    def submit(self, target: Snapshot) -> None:
        """Queue a conversion in the background."""
        self.runtime.queue.submit(self.delta.url, lambda _: self._in_background(target), target.version)

    def _in_background(self, target: Snapshot) -> None:
        try:
            with self.runtime.progress(self.delta.url) as progress:
                self.run(target, progress=progress)
        except ForeignWriter as error:
            version, url = target.version, self.delta.url
            logger.error("version %d of %s is not converted to Iceberg: %s", version, url, error, extra=about(url, version))

    def run(
        self,
        target: Snapshot,
        extra: Sequence[Pointer] = (),
        *,
        rebuild: bool = False,
        catalog_seconds: float = LOOK_SECONDS,
        progress: Progress = silent,
    ) -> Conversion:
        """Convert now.

        Args:
            extra: pointers to move in addition to those of the catalogs that the table's properties name.
        """
        runtime, url = self.runtime, self.delta.url
        try:
            pointers = [*self.pointers(target), *extra]
            runtime.calls.keep(url, [pointer.name for pointer in pointers])
            converter = Converter(self.delta, runtime.caches, runtime.shards)
            seconds = catalog_seconds
            with observed("convert", url) as observation:
                result = converter.convert(target, pointers, rebuild=rebuild, catalog_seconds=seconds, progress=progress)
                observation.record(result.version, partial(_fields, result))
        except BaseException as error:  # a panic in a compiled library is not an Exception
            code = error.code if isinstance(error, TahoeError) else type(error).__name__
            runtime.errors.put(url, LastError(target.version, code, str(error)))
            raise
        behind = result.catalog_errors.get(PATH)
        runtime.errors.put(url, None if behind is None else LastError(result.version, behind.code, behind.message))
        return result
