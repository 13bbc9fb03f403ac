"""How far the Iceberg side of a table is, and the handle by which a program asks for it, waits for it, or makes it go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from tahoe.clock import SYSTEM_CLOCK, Clock
from tahoe.exceptions import InvalidRequest, StorageFailure, TahoeError, Unsupported
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.protocol.iceberg_upgrade import Upgrade
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.txn.commit import Committed
from tahoe.uniform import queue
from tahoe.uniform.catalog import Catalog, catalog_names, named_catalog
from tahoe.uniform.converter import Conversion, ReadCommit, convert, newest_metadata
from tahoe.uniform.foreign import find_foreign, foreign_writer
from tahoe.uniform.guard import ForeignWriter
from tahoe.uniform.metadata import converted_timestamp_ms
from tahoe.uniform.record import read_record
from tahoe.uniform.repair import Append, Repair
from tahoe.uniform.repair import adopt as adopt_rows

__all__ = ["LastError", "UniformHandle", "UniformStatus", "after_commit"]

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class LastError:
    """The newest conversion of this process that failed."""

    version: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class UniformStatus:
    """How far the Iceberg side of a table is.

    Args:
        table: the table's URL.
        enabled: whether the table asks for UniForm.
        delta_version: the newest version of the Delta table.
        iceberg_version: the Delta version that the Iceberg side shows, None where there is none.
        lag_versions: how many versions it is behind; None where there is no Iceberg side.
        lag_seconds: time between the commit shown and the newest commit.
        metadata_location: what a reader opens.
        snapshot_id: Iceberg's id of what is shown; None for a table without snapshots.
        catalogs: the catalogs that the table's property names.
        is_converting: whether this process has a conversion of the table running or waiting.
        last_error: what went wrong last in this process, or what is wrong with the metadata; None when all is well.
    """

    table: str
    enabled: bool
    delta_version: int
    iceberg_version: int | None
    lag_versions: int | None
    lag_seconds: float | None
    metadata_location: str | None
    snapshot_id: int | None
    catalogs: tuple[str, ...]
    is_converting: bool
    last_error: LastError | None


class UniformHandle:
    """The Iceberg side of one table.

    Args:
        snapshot_at: the table at a version; called without one, at the newest.
        read_commit: the actions of one commit.
        append: `Table.append`, for the rows of another writer that a repair takes over.
        run_upgrade: what `upgrade` does, of the compatibility version and whether only to tell.
    """

    def __init__(
        self,
        store: LogStore,
        snapshot_at: Callable[..., Snapshot],
        read_commit: ReadCommit,
        clock: Clock = SYSTEM_CLOCK,
        append: Append | None = None,
        run_upgrade: Callable[[int, bool], Upgrade] | None = None,
    ) -> None:
        self._store = store
        self._snapshot_at = snapshot_at
        self._read_commit = read_commit
        self._clock = clock
        self._append = append
        self._run_upgrade = run_upgrade

    def __repr__(self) -> str:
        return f"UniformHandle({self._store.url})"

    def status(self) -> UniformStatus:
        """How far the Iceberg side is; reads the newest metadata file and the newest version, and never raises for what it finds
        on the Iceberg side: that is told as `last_error`."""
        target = self._snapshot_at()
        error = _ERRORS.get(self._store.url)
        try:
            findings = find_foreign(self._store, (), read_record(self._store))
            if findings:
                raise foreign_writer(self._store.url, findings)
            current = newest_metadata(self._store)
        except TahoeError as found:
            current, error = None, LastError(target.version, found.code, found.message)
        lag = None if current is None else max(target.version - current.version, 0)
        seconds = None
        if current is not None:
            behind = target.timestamp_ms - converted_timestamp_ms(current.document) if lag else 0
            seconds = max(behind, 0) / 1000
        return UniformStatus(
            table=self._store.url,
            enabled=uniform_is_enabled(target.config.properties),
            delta_version=target.version,
            iceberg_version=current.version if current else None,
            lag_versions=lag,
            lag_seconds=seconds,
            metadata_location=current.location if current else None,
            snapshot_id=current.document.get("current-snapshot-id") if current else None,
            catalogs=tuple(catalog_names(target.metadata.configuration)),
            is_converting=queue.QUEUE.is_busy(self._store.url),
            last_error=error,
        )

    def upgrade(self, compat_version: int = 2, *, dry_run: bool = False) -> Upgrade:
        """Make the table readable as Iceberg, whatever it was before: properties are set, and files that Iceberg's readers could not
        read right are written anew, as REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n)).

        Args:
            compat_version: of IcebergCompat: 1, 2, or 3 (Iceberg's format 3, with deletion vectors and row lineage).
            dry_run: only tell what would be done.

        Raises:
            InvalidRequest: the table has what Iceberg cannot have (``DELTA_ICEBERG_COMPAT_VIOLATION.…``).
            Unsupported: the handle was made without a table.
        """
        if self._run_upgrade is None:
            raise Unsupported(f"{self!r} only looks at the table; use Table.uniform.upgrade().", table=self._store.url)
        return self._run_upgrade(compat_version, dry_run)

    def sync(self, catalog: Catalog | str | None = None, *, rebuild: bool = False) -> Conversion:
        """Convert the newest version now, in this thread, and raise what goes wrong.

        Args:
            catalog: one more catalog whose pointer to move, or its name ``<catalog>:<namespace>.<table>``.
            rebuild: make everything anew from the live files, also over what another writer left on the Iceberg side.

        Raises:
            InvalidRequest: the table does not ask for UniForm.
            ForeignWriter: another writer has committed to the Iceberg side.
            StorageFailure: storage or a catalog failed.
        """
        target = self._newest()
        extra = [named_catalog(catalog) if isinstance(catalog, str) else catalog] if catalog is not None else []
        result = _convert(self._store, target, self._snapshot_at, self._read_commit, self._clock, extra, rebuild)
        for error in result.catalog_errors.values():
            raise error
        return result

    def repair(self, *, adopt: bool = False, discard: bool = False, dry_run: bool = False) -> Repair:
        """Settle what another writer has done to the Iceberg side.

        Args:
            adopt: append the rows that it appended to the Delta table, then go on from there.
            discard: leave its changes out. Its files stay where they are.
            dry_run: look, check and tell, and change nothing.

        Raises:
            InvalidRequest: not exactly one of `adopt` and `discard`; nothing to adopt.
            Unsupported: the other writer did more than append.
        """
        if adopt == discard:
            raise InvalidRequest("Say one of adopt=True (take appended rows over) and discard=True (leave the changes out).")
        target = self._newest()
        catalogs = [named_catalog(name) for name in catalog_names(target.metadata.configuration)]
        findings = find_foreign(self._store, catalogs, read_record(self._store))
        if not findings:
            return Repair("none", ())
        done = Repair("discard", tuple(findings))
        if adopt:
            done = adopt_rows(self._store, findings, None if dry_run else self._append)
        if dry_run:
            return done
        return replace(done, metadata_location=self.sync(rebuild=True).metadata_location)

    def start(self) -> int:
        """Have the newest version converted in the background, as after a commit; returns that version. `wait` waits for it.

        Nothing is started where the same version waits already, and nothing is done where it was converted.

        Raises:
            InvalidRequest: the table does not ask for UniForm.
        """
        target = self._newest()
        _submit(self._store, target, self._snapshot_at, self._read_commit, self._clock)
        return target.version

    def wait(self, version: int | None = None, timeout: float = 60.0) -> UniformStatus:
        """Wait until the Iceberg side shows a version (the newest one when None), whichever process converts it.

        Args:
            timeout: seconds.

        Raises:
            StorageFailure: it does not after `timeout` seconds, or this process tried and failed; the message says how.
        """
        wanted = self._snapshot_at().version if version is None else version
        deadline = self._clock.now_ms() + timeout * 1000
        while True:
            busy = queue.QUEUE.is_busy(self._store.url)
            current = newest_metadata(self._store)
            if current is not None and current.version >= wanted:
                return self.status()
            error = _ERRORS.get(self._store.url)
            if error is not None and not busy and error.version >= wanted:
                raise self._not_there(wanted, f"the conversion failed: {error.message}")
            if self._clock.now_ms() >= deadline:
                raise self._not_there(wanted, f"{timeout:.0f} seconds have passed")
            self._clock.sleep(_POLL_SECONDS)

    def _newest(self) -> Snapshot:
        """The newest version, of a table that asks for UniForm."""
        target = self._snapshot_at()
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


def after_commit(
    store: LogStore,
    snapshot_at: Callable[..., Snapshot],
    read_commit: ReadCommit,
    clock: Clock = SYSTEM_CLOCK,
) -> Callable[[Committed], None]:
    """The post-commit hook: has the committed version converted in the background, where the table asks for UniForm."""

    def hook(committed: Committed) -> None:
        target = committed.snapshot
        if uniform_is_enabled(target.config.properties):
            _submit(store, target, snapshot_at, read_commit, clock)

    return hook


class _Errors:
    """What went wrong last, by table; forgotten when a conversion succeeds."""

    def __init__(self) -> None:
        self._known: dict[str, LastError] = {}
        self._lock = Lock()

    def get(self, table: str) -> LastError | None:
        with self._lock:
            return self._known.get(table)

    def put(self, table: str, error: LastError | None) -> None:
        with self._lock:
            if error is None:
                self._known.pop(table, None)
            else:
                self._known[table] = error


_ERRORS = _Errors()


def _submit(
    store: LogStore, target: Snapshot, snapshot_at: Callable[[int], Snapshot], read_commit: ReadCommit, clock: Clock
) -> None:
    queue.QUEUE.submit(store.url, lambda _: _background(store, target, snapshot_at, read_commit, clock), target.version)


def _background(
    store: LogStore, target: Snapshot, snapshot_at: Callable[..., Snapshot], read_commit: ReadCommit, clock: Clock
) -> None:
    try:
        _convert(store, target, snapshot_at, read_commit, clock, [], False)
    except ForeignWriter as error:
        logger.error("version %d of %s is not converted to Iceberg: %s", target.version, store.url, error)


def _convert(
    store: LogStore,
    target: Snapshot,
    snapshot_at: Callable[..., Snapshot],
    read_commit: ReadCommit,
    clock: Clock,
    extra: Sequence[Catalog],
    rebuild: bool,
) -> Conversion:
    """Convert, and keep in mind how it went."""
    try:
        catalogs = [*(named_catalog(name) for name in catalog_names(target.metadata.configuration)), *extra]
        result = convert(store, target, snapshot_at, read_commit, catalogs, clock=clock, rebuild=rebuild)
    except BaseException as error:
        code = error.code if isinstance(error, TahoeError) else type(error).__name__
        _ERRORS.put(store.url, LastError(target.version, code, str(error)))
        raise
    behind = next(iter(result.catalog_errors.values()), None)
    _ERRORS.put(store.url, None if behind is None else LastError(result.version, behind.code, behind.message))
    return result
