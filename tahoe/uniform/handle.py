"""The handle that users hold of a table's Iceberg side, `Table.uniform`: it asks for the status, waits, converts and repairs. And the
hook that has every commit converted. What the status is, `status` says; what a conversion does, `convert.converter`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tahoe.argument_checks import checked_arguments
from tahoe.exceptions import ForeignWriter, InvalidRequest, StorageFailure, TahoeError, Unsupported
from tahoe.progress import Progress, shown, silent
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.protocol.iceberg_upgrade import Upgrade
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.commit import Committed
from tahoe.uniform.catalogs.catalog import PATH, Catalog
from tahoe.uniform.catalogs.pointers import LOOK_SECONDS, Asked, Pointer
from tahoe.uniform.convert.conversion import Conversion, DeltaSide
from tahoe.uniform.convert.converter import Converter
from tahoe.uniform.others.foreign import Finding, find_foreign
from tahoe.uniform.others.look import Look, look_at, newest_metadata, newest_number
from tahoe.uniform.others.record import read_record
from tahoe.uniform.others.repair import Append, Repair
from tahoe.uniform.others.repair import adopt as adopt_rows
from tahoe.uniform.runtime import LastError, UniformRuntime
from tahoe.uniform.status import UniformStatus, status_of

__all__ = ["UniformHandle", "after_commit"]

logger = logging.getLogger(__name__)

SYNC_SECONDS = 60.0
"""How long `UniformHandle.sync` waits for catalogs where it is not told."""

_POLL_SECONDS = 0.02


@checked_arguments
class UniformHandle:
    """The Iceberg side of one table.

    Args:
        delta: the table's Delta side.
        runtime: what its conversions share with those of other tables.
        append: `Table.append`, for the rows of another writer that a repair takes over.
        run_upgrade: what `upgrade` does, given the compatibility version and whether it is a dry run.
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
        self._runtime = runtime
        self._conversions = _Conversions(delta, runtime)
        self._append = append
        self._run_upgrade = run_upgrade

    def __repr__(self) -> str:
        return f"UniformHandle({self._store.url})"

    def status(self, *, catalog_seconds: float | None = None) -> UniformStatus:
        """How far the Iceberg side is; reads the newest metadata file and the newest version, and never raises for what it finds
        on the Iceberg side: that is the status's `last_error`.

        Args:
            catalog_seconds: how long to wait for the catalogs to say what they show. They are not asked when None: what is told then is
                what the last conversion noted.
        """
        return status_of(self._store, self._delta.snapshot_at(), self._runtime, catalog_seconds)

    def upgrade(self, compat_version: int = 2, *, dry_run: bool = False) -> Upgrade:
        """Make the table readable as Iceberg, whatever it was before: properties are set, and files that Iceberg's readers could not
        read right are written anew, as REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n)).

        Args:
            compat_version: of IcebergCompat: 1, 2, or 3 (Iceberg's format 3, with deletion vectors and row lineage).
            dry_run: report what would be done, and change nothing.

        Raises:
            InvalidRequest: the table has what Iceberg cannot have (``DELTA_ICEBERG_COMPAT_VIOLATION.…``).
            Unsupported: the handle was made without a table.
        """
        if self._run_upgrade is None:
            raise Unsupported(
                f"{self!r} only looks at the table; use Table.uniform.upgrade().",
                code="TAHOE_UNIFORM_HANDLE_WITHOUT_TABLE",
                table=self._store.url,
            )
        return self._run_upgrade(compat_version, dry_run)

    def sync(self, catalog: Catalog | str | None = None, *, rebuild: bool = False, timeout: float = SYNC_SECONDS) -> Conversion:
        """Convert the newest version now, in this thread, and raise what goes wrong.

        Args:
            catalog: one more catalog whose pointer to move, or its name ``<catalog>:<namespace>.<table>``.
            rebuild: make everything anew from the live files, also over what another writer left on the Iceberg side.
            timeout: seconds to wait for catalogs after readers by path have the new metadata. A `catalog` that is not given by its name
                is waited for as long as it takes.

        Raises:
            InvalidRequest: the table does not ask for UniForm.
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
        """Settle what another writer has done to the Iceberg side.

        Args:
            adopt: append the rows that it appended to the Delta table, then go on from there.
            discard: leave its changes out. Its files stay where they are.
            dry_run: look, check and report, and change nothing.

        Raises:
            InvalidRequest: not exactly one of `adopt` and `discard`; nothing to adopt.
            Unsupported: the other writer did more than append.
        """
        if adopt == discard:
            raise InvalidRequest(
                "Say one of adopt=True (take appended rows over) and discard=True (leave the changes out).",
                code="TAHOE_UNIFORM_REPAIR_AMBIGUOUS",
                table=self._store.url,
            )
        look, findings = self._findings()
        if not findings:
            return Repair("none", ())
        done = Repair("discard", tuple(findings))
        if adopt:
            done = adopt_rows(self._store, look, findings, None if dry_run else self._append)
        if dry_run:
            return done
        return replace(done, metadata_location=self.sync(rebuild=True).metadata_location)

    def foreign_changes(self) -> list[tuple[str, str]]:
        """What another writer has done to the Iceberg side, a sentence and a place for each; nothing is changed.

        The folder, the catalogs and Tahoe's own record are looked at. Raises `InvalidRequest` where the table does not ask for UniForm.
        """
        return [(f"{found.sentence}. Settle it: tahoe uniform repair.", found.location) for found in self._findings()[1]]

    def start(self) -> int:
        """Have the newest version converted in the background, as after a commit; returns that version. `wait` waits for it.

        Nothing is started where the same version waits already, and nothing is done where it was converted.

        Raises:
            InvalidRequest: the table does not ask for UniForm.
        """
        target = self._newest()
        self._conversions.submit(target)
        return target.version

    def wait(self, version: int | None = None, timeout: float = 60.0) -> UniformStatus:
        """Wait until the Iceberg side shows a version (the newest one when None), whichever process converts it.

        Args:
            timeout: seconds.

        Raises:
            StorageFailure: it does not after `timeout` seconds, or this process tried and failed; the message says how.
        """
        wanted = self._delta.snapshot_at().version if version is None else version
        deadline = self._delta.clock.now_ms() + timeout * 1000
        number = None
        while True:
            busy = self._runtime.queue.is_busy(self._store.url)
            if (newest := newest_number(self._store)) != number:
                number, current = newest, newest_metadata(self._store)
                if current is not None and current.version >= wanted:
                    return self.status()
            error = self._runtime.errors.get(self._store.url)
            if error is not None and not busy and error.version >= wanted:
                raise self._not_there(wanted, f"the conversion failed: {error.message}")
            if self._delta.clock.now_ms() >= deadline:
                raise self._not_there(wanted, f"{timeout:.0f} seconds have passed")
            self._delta.clock.sleep(_POLL_SECONDS)

    def _findings(self) -> tuple[Look, list[Finding]]:
        asked = Asked(self._conversions.pointers(self._newest()))
        look = look_at(self._store)
        return look, find_foreign(self._store, look, asked.answers(LOOK_SECONDS)[0], read_record(self._store))

    def _newest(self) -> Snapshot:
        """The newest version, of a table that asks for UniForm."""
        target = self._delta.snapshot_at()
        if not uniform_is_enabled(target.config.properties):
            raise InvalidRequest(
                f"Table {self._store.url} does not ask for UniForm. Set delta.universalFormat.enabledFormats = iceberg, "
                "delta.enableIcebergCompatV2 = true and delta.columnMapping.mode = name.",
                code="DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED",
                table=self._store.url,
            )
        return target

    def _not_there(self, version: int, why: str) -> StorageFailure:
        return StorageFailure(
            f"The Iceberg side of table {self._store.url} does not show version {version}: {why}. Run table.uniform.sync().",
            code="DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED",
            table=self._store.url,
            version=version,
        )


def after_commit(delta: DeltaSide, runtime: UniformRuntime) -> Callable[[Committed], None]:
    """The post-commit hook: has the committed version converted in the background, where the table asks for UniForm."""
    conversions = _Conversions(delta, runtime)

    def hook(committed: Committed) -> None:
        if uniform_is_enabled(committed.snapshot.config.properties):
            conversions.submit(committed.snapshot)

    return hook


@dataclass(frozen=True, slots=True)
class _Conversions:
    """Has one table converted, and notes how it went."""

    delta: DeltaSide
    runtime: UniformRuntime

    def pointers(self, target: Snapshot) -> list[Pointer]:
        return self.runtime.pointers(self.delta.url, target.metadata.configuration)

    def submit(self, target: Snapshot) -> None:
        """Convert soon, in the background."""
        self.runtime.queue.submit(self.delta.url, lambda _: self._in_background(target), target.version)

    def _in_background(self, target: Snapshot) -> None:
        try:
            self.run(target)
        except ForeignWriter as error:
            logger.error("version %d of %s is not converted to Iceberg: %s", target.version, self.delta.url, error)

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
            extra: pointers to move next to those in the catalogs that the table's properties name.
        """
        runtime, url = self.runtime, self.delta.url
        try:
            pointers = [*self.pointers(target), *extra]
            runtime.calls.keep(url, [pointer.name for pointer in pointers])
            converter = Converter(self.delta, runtime.caches, runtime.slices)
            seconds = catalog_seconds
            result = converter.convert(target, pointers, rebuild=rebuild, catalog_seconds=seconds, progress=progress)
        except BaseException as error:  # a panic of a compiled library is no Exception
            code = error.code if isinstance(error, TahoeError) else type(error).__name__
            runtime.errors.put(url, LastError(target.version, code, str(error)))
            raise
        behind = result.catalog_errors.get(PATH)
        runtime.errors.put(url, None if behind is None else LastError(result.version, behind.code, behind.message))
        return result
