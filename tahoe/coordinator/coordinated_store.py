"""`CoordinatedStore`: the storage of a table with a commit coordinator, so that its log reads and writes like any other.

A commit's name, ``_delta_log/<version>.json``, is resolved through the coordinator: to the staged file of a ratified commit that is not
published, to nothing if the version is newer than the last, else to the published file. Putting a commit there stages it, has it
ratified, and publishes it (PROTOCOL.md, "Commit Protocol", "Reading Catalog-managed Tables", "Publishing Commits"). So all code that
reads or writes a log is correct for these tables too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, TypeVar

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound, StorageFailure, TahoeError
from tahoe.base.log_fields import about
from tahoe.coordinator.coordinator import Coordinator, Managed, StagedCommit
from tahoe.log.files.commits import parse_actions
from tahoe.log.files.paths import LOG_FOLDER, STAGED_FOLDER, commit_name, parse, staged_name, staged_version
from tahoe.protocol.actions import CommitInfo, Protocol
from tahoe.protocol.features import COORDINATED
from tahoe.protocol.protocols import features_of
from tahoe.store.log_store import Coordination, Created, Entry, Exists, LogStore, PutOutcome, Refused, StoreOver, Unanswered

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_MOST_LOOKS = 3


class CoordinatedStore(StoreOver):
    """`tahoe.store.log_store.LogStore` of a table that a coordinator manages, or may come to manage.

    Args:
        inner: the table's storage.
        coordinator: ratifies the table's commits. A table that it does not know is read and written as any other, until a commit adds the
            feature ``catalogManaged``.
        clock: provides the UUIDs in the names of staged commits.
    """

    def __init__(self, inner: LogStore, coordinator: Coordinator, clock: Clock) -> None:
        super().__init__(inner)
        self.coordinator = coordinator
        self._clock = clock

    def __repr__(self) -> str:
        return f"CoordinatedStore({self.inner!r}, {self.coordinator!r})"

    def __reduce__(self) -> tuple[Callable[..., LogStore], tuple[LogStore]]:
        # Another process reads data files through it. The coordinator's address stays here; there, reading the log raises an error.
        return _identity, (self.inner,)

    @property
    def coordination(self) -> Coordination:
        """See `LogStore.coordination`."""
        return "offered" if self.managed() is None else "in force"

    def managed(self) -> Managed | None:
        """Return the coordinator's state of the table; None if it does not manage it."""
        managed = self.coordinator.managed([self.url]).get(self.url)
        if managed is None or managed.last_version is not None:
            return self._validated(managed)
        return self._complete_adoption(managed)

    # -- reading -----------------------------------------------------------------------------------------------------------

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """See `LogStore.list_from`; the log is listed as the coordinator defines it, which is asked first."""
        managed = self.managed() if folder == LOG_FOLDER else None
        entries = self.inner.list_from(folder, start)
        if managed is None:
            return entries
        listed = {entry.name: entry for entry in entries if _is_known(entry.name, managed)}
        if len(listed) < len(entries):
            self._check_newer(managed, [entry for entry in entries if entry.name not in listed])
        ratified = (_entry(commit) for commit in managed.commits.values())
        listed.update((entry.name, entry) for entry in ratified if entry.name >= f"{LOG_FOLDER}/{start}")
        self._check_last(managed, listed, start)
        return [listed[name] for name in sorted(listed)]

    def names_from(self, folder: str, start: str = "") -> list[str]:
        """See `LogStore.names_from`."""
        if folder == LOG_FOLDER:
            return [entry.name for entry in self.list_from(folder, start)]
        return self.inner.names_from(folder, start)

    def walk(self, folder: str = "") -> Iterator[Entry]:
        """See `LogStore.walk`: the files as they are in storage."""
        return self.inner.walk(folder)

    def folders(self, folder: str = "") -> list[str]:
        """See `FolderStore.folders`, which the inner store must have."""
        result: list[str] = self.inner.folders(folder)  # type: ignore[attr-defined]
        return result

    def has_folder(self, folder: str) -> bool:
        """See `FolderStore.has_folder`, which the inner store must have."""
        result: bool = self.inner.has_folder(folder)  # type: ignore[attr-defined]
        return result

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`."""
        if parse(name) is None or (managed := self.managed()) is None:
            return self.inner.head(name)
        if not _is_known(name, managed):
            self._check_asked(name, managed)
            return None
        commit = _ratified(name, managed)
        return self.inner.head(name) if commit is None else _entry(commit)

    def get(self, name: str) -> bytes:
        """See `LogStore.get`."""
        return self._read_mapped(name, self.inner.get)

    def get_many(self, names: list[str]) -> list[bytes]:
        """See `LogStore.get_many`."""
        managed = self.managed() if any(parse(name) for name in names) else None
        if managed is None:
            return self.inner.get_many(names)
        if all(_is_known(name, managed) for name in names):
            try:
                return self.inner.get_many([_location(name, managed) for name in names])
            except NotFound as error:
                logger.debug("a commit of %s moved during the read: %s", self.url, error, extra=about(self.url))
        return [self.get(name) for name in names]

    def open_input(self, name: str) -> pa.NativeFile:
        """See `LogStore.open_input`."""
        return self._read_mapped(name, self.inner.open_input)

    # -- writing -----------------------------------------------------------------------------------------------------------

    def put(self, name: str, data: bytes) -> None:
        """See `LogStore.put`; a checkpoint waits until its version is published (PROTOCOL.md, "Maintenance Operations")."""
        self._check_put(name)
        self.inner.put(name, data)

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        """See `LogStore.open_output`, and `put`."""
        self._check_put(name)
        return self.inner.open_output(name)

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`; a commit is staged, ratified and published, and `Created` once it is ratified."""
        parsed = parse(name)
        if parsed is None or parsed.kind != "commit":
            self._check_put(name)
            return self.inner.put_if_absent(name, data)
        try:
            managed = self.managed()
            if managed is None or managed.last_version is None:
                return self._put_plain(parsed.version, name, data)
            if managed.last_version >= parsed.version:
                return Exists()
            self._check_known(managed, parsed.version - 1)
            staged = self.stage(parsed.version, data)
            outcome = self.coordinator.ratify([staged])
        except StorageFailure as error:
            return Refused(error.message)
        self.follow_up(staged, outcome)
        return outcome

    def check_free(self, version: int) -> None:
        """Check before a commit is proposed that no published commit has its number, even one unknown to the coordinator.

        Raises:
            CorruptTable: ``TAHOE_COORDINATOR_BEHIND`` or ``TAHOE_UNRATIFIED_COMMIT`` if one has.
        """
        entry = self.inner.head(commit_name(version))
        if entry is None:
            return
        managed = self.managed()
        if managed is not None and managed.last_version is not None and managed.last_version < version:
            self._check_newer(managed, [entry])
            raise _unratified_commit_error(self.url, repr(self.coordinator), version)

    def stage(self, version: int, data: bytes) -> StagedCommit:
        """Write a commit as a staged file, from which it can be ratified.

        Raises:
            StorageFailure: the file is missing afterwards.
            CorruptTable: see `check_free`.
        """
        self.check_free(version)
        name = staged_name(version, self._clock.uuid())
        outcome = self.inner.put_if_absent(name, data)
        if isinstance(outcome, Created | Unanswered):
            entry = self.inner.head(name)
            if entry is not None and entry.size == len(data):
                return StagedCommit(self.url, version, name.rpartition("/")[2], entry.size, entry.modified_ms)
        error = "the name is taken" if isinstance(outcome, Exists | Created) else outcome.error
        raise StorageFailure(
            f"Storage did not store the commit of version {version} to table {self.url} as {name} ({error}); nothing was committed. "
            "Try again.",
            table=self.url,
            version=version,
            file=name,
        )

    def follow_up(self, staged: StagedCommit, outcome: PutOutcome) -> None:
        """Publish a ratified commit, or delete a rejected one. Neither can fail the commit: any writer can do it later.

        Raises:
            CorruptTable: ``TAHOE_COORDINATOR_BEHIND`` if the coordinator rejected it without knowing the previous version.
        """
        lost = isinstance(outcome, Exists | Refused)
        managed = None
        if isinstance(outcome, Created):
            try:
                self.publish()
            except Exception:
                logger.exception(
                    "version %d of %s is ratified, but not published; a later commit will publish it",
                    *(staged.version, self.url),
                    extra=about(self.url, staged.version),
                )
        try:
            managed = self.managed() if lost else None
            if lost and not _names(managed, staged):
                self.inner.delete(f"{STAGED_FOLDER}/{staged.file}")
        except TahoeError as error:
            logger.warning(
                "the clean-up after the commit of version %d of %s is left to other writers: %s",
                *(staged.version, self.url, error),
                extra=about(self.url, staged.version),
            )
        if managed is not None and isinstance(outcome, Exists):
            self._check_known(managed, staged.version - 1)

    def publish(self) -> int | None:
        """Copy all ratified commits into the log, oldest first; return the last version, None if no coordinator manages the table.

        Raises:
            StorageFailure: storage refused a commit; publishing can be repeated.
            CorruptTable: another commit has the name of one, from a writer that bypassed the coordinator.
        """
        managed = self.managed()
        if managed is None:
            return None
        for version in sorted(managed.commits):
            if not self._publish(managed.commits[version]):
                return self.publish()
        if managed.commits:
            self.coordinator.published(self.url, max(managed.commits))
        return managed.last_version

    def delete(self, name: str) -> None:
        """See `LogStore.delete`; a ratified commit is published before its staged file, or its published copy, is deleted."""
        parsed = parse(name)
        version = staged_version(name) if parsed is None else parsed.version if parsed.kind == "commit" else None
        if version is not None and (managed := self.managed()) is not None and version in managed.commits:
            self.publish()
        self.inner.delete(name)

    # -- inside ------------------------------------------------------------------------------------------------------------

    def _read_mapped(self, name: str, read: Callable[[str], Answer]) -> Answer:
        """Read a name from the file to which the coordinator maps it; repeated if a commit was published and cleaned up meanwhile."""
        if parse(name) is None:
            return read(name)
        for _ in range(_MOST_LOOKS):
            managed = self.managed()
            if managed is None:
                return read(name)
            if not _is_known(name, managed):
                raise NotFound(
                    f"{name} of table {self.url} is newer than its last version, {managed.last_version}, according to {self.coordinator!r}.",
                    code="DELTA_LOG_FILE_NOT_FOUND",
                    table=self.url,
                    file=name,
                )
            location = _location(name, managed)
            try:
                return read(location)
            except NotFound:
                if location == name:
                    raise
        raise CorruptTable(
            f"Table {self.url}: {self.coordinator!r} names {location} as the commit {name}, but there is no such file. "
            "Restore it from a backup.",
            code="DELTA_LOG_FILE_NOT_FOUND",
            table=self.url,
            file=location,
        )

    def _validated(self, managed: Managed | None) -> Managed | None:
        """Check that each file is a staged commit's, so that no name in the database leads elsewhere."""
        for version, commit in managed.commits.items() if managed else ():
            if staged_version(f"{STAGED_FOLDER}/{commit.file}") != version:
                raise CorruptTable(
                    f"Table {self.url}: {self.coordinator!r} names {commit.file!r} as the commit of version {version}, which is not "
                    "the name of a staged commit. Find out who wrote to its database.",
                    code="TAHOE_UNRATIFIED_COMMIT",
                    table=self.url,
                    version=version,
                )
        return managed

    def _check_last(self, managed: Managed, listed: dict[str, Entry], start: str) -> None:
        """Add the newest commit, which is ratified and so must exist, if the listing lags; without it an old version would be shown."""
        last = managed.last_version
        if last is None or (name := commit_name(last)) in listed or name < f"{LOG_FOLDER}/{start}":
            return
        entry = self.inner.head(name)
        if entry is None:
            raise CorruptTable(
                f"Table {self.url}: {self.coordinator!r} says that version {last} is the last, but its commit {name} is missing. Restore it "
                "from a backup; if the table was deleted, call the coordinator's forget(table.url).",
                code="DELTA_LOG_FILE_NOT_FOUND",
                table=self.url,
                version=last,
                file=name,
            )
        listed[name] = entry

    def _check_newer(self, managed: Managed, newer: Sequence[Entry]) -> None:
        """Handle files newer than the last version: see `tahoe.coordinator.coordinated_store`. The coordinator is asked again."""
        parsed = ((parse(entry.name), entry) for entry in newer)
        commits = [(path.version, entry) for path, entry in parsed if path is not None and path.kind == "commit"]
        if not commits or (now := self.managed()) is None or now.last_version is None:
            return
        last = now.last_version
        version = _newest_ratified(self.inner, [(version, entry) for version, entry in commits if version > last])
        if version is not None:
            raise _behind_error(self.url, repr(self.coordinator), last, version)

    def _check_asked(self, name: str, managed: Managed) -> None:
        """Check a file beyond the next version: a client that asks for one may have seen versions that the coordinator forgot."""
        parsed = parse(name)
        if parsed is not None and managed.last_version is not None and parsed.version > managed.last_version + 1:
            newer = self.inner.list_from(LOG_FOLDER, commit_name(managed.last_version + 1).rpartition("/")[2])
            self._check_newer(managed, newer)

    def _check_known(self, managed: Managed, version: int) -> None:
        """Check that the coordinator has ratified `version`, on which a commit was based."""
        if managed.last_version is not None and managed.last_version < version:
            raise _behind_error(self.url, repr(self.coordinator), managed.last_version, version)

    def _publish(self, commit: StagedCommit) -> bool:
        """Copy a commit into the log; return False if another writer has published and cleaned it up since the coordinator was asked."""
        name = commit_name(commit.version)
        try:
            data = self.inner.get(f"{STAGED_FOLDER}/{commit.file}")
        except NotFound:
            managed = self.managed()
            if managed is None or managed.commits.get(commit.version) != commit:
                return False
            raise
        outcome = self.inner.put_if_absent(name, data)
        if isinstance(outcome, Created):
            return True
        if not isinstance(outcome, Exists):
            raise StorageFailure(
                f"Storage did not store {name} of table {self.url}, a commit that {self.coordinator!r} has ratified ({outcome.error}). "
                "The commit is valid all the same; publish it later.",
                table=self.url,
                file=name,
            )
        if self.inner.get(name) != data:
            raise CorruptTable(
                f"Table {self.url}: {name} is another commit than the one that {self.coordinator!r} has ratified, from a writer that "
                f"bypassed it. The valid commit is {STAGED_FOLDER}/{commit.file}; find that writer, then delete {name}.",
                code="TAHOE_UNRATIFIED_COMMIT",
                table=self.url,
                version=commit.version,
                file=name,
            )
        return True

    def _put_plain(self, version: int, name: str, data: bytes) -> PutOutcome:
        """Put a commit to an unmanaged table by its name; if it adds the feature, putting it also ratifies it."""
        transaction_id = _adoption_id(name, data, self.url)
        if transaction_id is None:
            return self.inner.put_if_absent(name, data)
        self.coordinator.expect(self.url, version, transaction_id)
        outcome = self.inner.put_if_absent(name, data)
        if isinstance(outcome, Created):
            try:
                self.coordinator.adopt(self.url, version)
            except StorageFailure as error:
                logger.warning(
                    "%s is managed now, but its coordinator does not know yet; other writers will complete this: %s",
                    *(self.url, error),
                    extra=about(self.url),
                )
        return outcome

    def _complete_adoption(self, managed: Managed) -> Managed | None:
        """Complete the start of coordination by a writer that may have crashed: see `Coordinator.expect`."""
        for version, transaction_id in managed.expected:
            try:
                data = self.inner.get(commit_name(version))
            except NotFound:
                continue
            if _adoption_id(commit_name(version), data, self.url) == transaction_id:
                self.coordinator.adopt(self.url, version)
                now = self.coordinator.managed([self.url]).get(self.url)
                return None if now is None or now.last_version is None else now
        return None

    def _check_put(self, name: str) -> None:
        parsed = parse(name)
        if parsed is None or parsed.kind == "checksum" or (managed := self.managed()) is None:
            return
        if parsed.kind == "commit":
            raise InvalidRequest(
                f"{name} of table {self.url} cannot be overwritten: {self.coordinator!r} decides which commits the table has.",
                code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
                table=self.url,
                file=name,
            )
        self._check_known(managed, parsed.last_version)
        if any(version <= parsed.last_version for version in managed.commits):
            self.publish()


def _identity(store: LogStore) -> LogStore:
    return store


def _is_known(name: str, managed: Managed) -> bool:
    """Whether a file of the log is not newer than the coordinator's last version."""
    parsed = parse(name)
    return parsed is None or managed.last_version is None or parsed.last_version <= managed.last_version


def _ratified(name: str, managed: Managed) -> StagedCommit | None:
    parsed = parse(name)
    return managed.commits.get(parsed.version) if parsed is not None and parsed.kind == "commit" else None


def _location(name: str, managed: Managed) -> str:
    commit = _ratified(name, managed)
    return name if commit is None else f"{STAGED_FOLDER}/{commit.file}"


def _names(managed: Managed | None, staged: StagedCommit) -> bool:
    """Whether the coordinator names a staged file nevertheless: a client below it may have repeated a request."""
    return managed is not None and any(commit.file == staged.file for commit in managed.commits.values())


def _entry(commit: StagedCommit) -> Entry:
    return Entry(commit_name(commit.version), commit.size, commit.modified_ms)


def _adoption_id(name: str, data: bytes, url: str) -> str | None:
    """Return the ``txnId`` of a commit that puts its table under a coordinator ('' if it has none); None for every other commit."""
    if not any(feature.encode() in data for feature in COORDINATED):
        return None
    actions = [action for _, action in parse_actions(name, data, url)]
    if not any(features_of(action) & COORDINATED for action in actions if isinstance(action, Protocol)):
        return None
    return next((action.transaction_id or "" for action in actions if isinstance(action, CommitInfo)), "")


# -- commits newer than the coordinator's last version ---------------------------------------------------------------------------


def _newest_ratified(store: LogStore, published: Sequence[tuple[int, Entry]]) -> int | None:
    """Return the newest of these commits that was once ratified, i.e. is the copy of a staged file; None if there is none.

    Args:
        store: the table's own storage.
        published: commits in the log, each with its version.
    """
    if not published:
        return None
    staged: dict[int, list[Entry]] = {}
    for entry in store.list_from(STAGED_FOLDER, f"{min(version for version, _ in published):020d}"):
        version = staged_version(entry.name)
        if version is not None:
            staged.setdefault(version, []).append(entry)
    for version, commit in sorted(published, reverse=True):
        same_size = [entry.name for entry in staged.get(version, ()) if entry.size == commit.size]
        if same_size and store.get(commit.name) in (store.get(name) for name in same_size):
            return version
    return None


def _behind_error(table: str, coordinator: str, last: int, version: int) -> CorruptTable:
    """Return the error for a coordinator that names `last` as the last version but has ratified the newer `version`."""
    return CorruptTable(
        f"Table {table}: {coordinator} says that version {last} is the last, but it has ratified version {version} before. Its database was "
        "restored from an older backup, its URL names a lagging replica, or the table was dropped and recreated. Nothing is read "
        "or written, so that no acknowledged commit is lost. Use the up-to-date database, or restore it from a newer backup. If "
        f"there is none, and {commit_name(version)} is the newest commit of the log: coordinator.forget(table.url), "
        f"coordinator.expect(table.url, {version}, ''), coordinator.adopt(table.url, {version}); unpublished commits are lost then.",
        code="TAHOE_COORDINATOR_BEHIND",
        table=table,
        version=version,
    )


def _unratified_commit_error(table: str, coordinator: str, version: int) -> CorruptTable:
    """Return the error for an unratified commit in the log with the next version's number."""
    name = commit_name(version)
    return CorruptTable(
        f"Table {table}: {name} exists, but {coordinator} has not ratified it. Nothing was committed, to avoid two commits of "
        f"version {version}. A writer bypassed the coordinator: find that writer, then delete {name}.",
        code="TAHOE_UNRATIFIED_COMMIT",
        table=table,
        version=version,
        file=name,
    )
