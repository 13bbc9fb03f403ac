"""How far the Iceberg side of a table is, and the handle by which a program asks for it, waits for it, or makes it go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

from tahoe.clock import SYSTEM_CLOCK, Clock
from tahoe.exceptions import ForeignWriter, InvalidRequest, StorageFailure, TahoeError, Unsupported
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.protocol.iceberg_upgrade import Upgrade
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.txn.commit import Committed
from tahoe.uniform.catalogs import pointers
from tahoe.uniform.catalogs.catalog import PATH, Catalog
from tahoe.uniform.catalogs.configured import catalog_names, named_catalog
from tahoe.uniform.catalogs.pointers import LOOK_SECONDS, Asked, Pointer
from tahoe.uniform.convert import queue, slices
from tahoe.uniform.convert.converter import Conversion, ReadCommit, convert
from tahoe.uniform.others.foreign import find_foreign
from tahoe.uniform.others.look import look_at, newest_metadata, newest_number
from tahoe.uniform.others.record import read_record
from tahoe.uniform.others.repair import Append, Repair
from tahoe.uniform.others.repair import adopt as adopt_rows
from tahoe.uniform.status import CatalogStatus, LastError, UniformStatus, status_of

__all__ = ["CatalogStatus", "LastError", "UniformHandle", "UniformStatus", "after_commit"]

logger = logging.getLogger(__name__)

SYNC_SECONDS = 60.0
_POLL_SECONDS = 0.02


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

    def status(self, *, catalog_seconds: float | None = None) -> UniformStatus:
        """How far the Iceberg side is; reads the newest metadata file and the newest version, and never raises for what it finds
        on the Iceberg side: that is told as `last_error`.

        Args:
            catalog_seconds: how long to wait for the catalogs to say what they show. They are not asked when None: what is told then is
                what the last conversion noted.
        """
        target = self._snapshot_at()
        return status_of(self._store, target, _pointers(self._store, target), _ERRORS.get(self._store.url), catalog_seconds)

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
            extra = [Pointer(self._store.url, named_catalog(catalog))]
        elif catalog is not None:
            extra = [Pointer(self._store.url, catalog, here=True)]
        result = _convert(self._store, target, self._snapshot_at, self._read_commit, self._clock, extra, rebuild, timeout)
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
        asked = Asked(_pointers(self._store, self._newest()))
        look = look_at(self._store)
        findings = find_foreign(self._store, look, asked.answers(LOOK_SECONDS)[0], read_record(self._store))
        if not findings:
            return Repair("none", ())
        done = Repair("discard", tuple(findings))
        if adopt:
            done = adopt_rows(self._store, look, findings, None if dry_run else self._append)
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
        number = None
        while True:
            busy = queue.QUEUE.is_busy(self._store.url)
            if (newest := newest_number(self._store)) != number:
                number, current = newest, newest_metadata(self._store)
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
        _convert(store, target, snapshot_at, read_commit, clock, [], False, LOOK_SECONDS)
    except ForeignWriter as error:
        logger.error("version %d of %s is not converted to Iceberg: %s", target.version, store.url, error)


def _pointers(store: LogStore, target: Snapshot) -> list[Pointer]:
    """Those of the catalogs that the table's property names."""
    return [Pointer(store.url, named_catalog(name)) for name in catalog_names(target.metadata.configuration)]


def _convert(
    store: LogStore,
    target: Snapshot,
    snapshot_at: Callable[..., Snapshot],
    read_commit: ReadCommit,
    clock: Clock,
    extra: Sequence[Pointer],
    rebuild: bool,
    catalog_seconds: float,
) -> Conversion:
    """Convert, and keep in mind how it went."""
    try:
        found = [*_pointers(store, target), *extra]
        pointers.CALLS.keep(store.url, [pointer.name for pointer in found])
        result = convert(
            store,
            target,
            snapshot_at,
            read_commit,
            found,
            clock=clock,
            rebuild=rebuild,
            catalog_seconds=catalog_seconds,
            slices=slices.offered(),
        )
    except BaseException as error:
        code = error.code if isinstance(error, TahoeError) else type(error).__name__
        _ERRORS.put(store.url, LastError(target.version, code, str(error)))
        raise
    behind = result.catalog_errors.get(PATH)
    _ERRORS.put(store.url, None if behind is None else LastError(result.version, behind.code, behind.message))
    return result
