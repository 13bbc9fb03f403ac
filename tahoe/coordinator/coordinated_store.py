"""`CoordinatedStore`: the storage of a table whose commits a coordinator ratifies, so that its log reads and writes like any other.

A commit's name, ``_delta_log/<version>.json``, stands for what the coordinator says: for the staged file of a commit that is ratified and
not published, for nothing where the version is newer than the last, else for the published file. Putting a commit there stages it, has it
ratified, and publishes it (PROTOCOL.md, "Commit Protocol", "Reading Catalog-managed Tables", "Publishing Commits"). So whatever reads or
writes a log does it right for these tables too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, TypeVar

import pyarrow as pa

from tahoe.clock import Clock
from tahoe.coordinator.contradiction import forgotten, ratified_before, unknown_commit
from tahoe.coordinator.coordinator import Coordinator, Managed, StagedCommit
from tahoe.exceptions import CorruptTable, InvalidRequest, NotFound, StorageFailure, TahoeError
from tahoe.log.files.commits import parse_actions
from tahoe.log.files.paths import LOG_FOLDER, STAGED_FOLDER, commit_name, parse, staged_name, staged_version
from tahoe.protocol.actions import CommitInfo, Protocol
from tahoe.protocol.features import COORDINATED, features_of
from tahoe.store.log_store import Coordination, Created, Entry, Exists, LogStore, Outside, PutOutcome, Refused, Unanswered

__all__ = ["CoordinatedStore"]

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_MOST_LOOKS = 3


class CoordinatedStore:
    """`tahoe.store.log_store.LogStore` of a table that a coordinator manages, or may come to manage.

    Args:
        inner: the table's storage.
        coordinator: who ratifies its commits. A table that it does not know is read and written as any other, until a commit brings the
            feature ``catalogManaged``.
        clock: names of staged commits.
    """

    def __init__(self, inner: LogStore, coordinator: Coordinator, clock: Clock) -> None:
        self.inner = inner
        self.coordinator = coordinator
        self._clock = clock

    def __repr__(self) -> str:
        return f"CoordinatedStore({self.inner!r}, {self.coordinator!r})"

    def __reduce__(self) -> tuple[Callable[..., LogStore], tuple[LogStore]]:
        # Another process reads data files through it. What the coordinator is reached by stays here; there the log is refused by name.
        return _same, (self.inner,)

    @property
    def url(self) -> str:
        """See `LogStore.url`."""
        return self.inner.url

    @property
    def asks_cheaply(self) -> bool:
        """See `LogStore.asks_cheaply`."""
        return self.inner.asks_cheaply

    @property
    def outside(self) -> Outside:
        """See `LogStore.outside`."""
        return self.inner.outside

    @property
    def coordination(self) -> Coordination:
        """See `LogStore.coordination`."""
        return "offered" if self.managed() is None else "in force"

    def managed(self) -> Managed | None:
        """What the coordinator knows of the table; None where it does not manage it."""
        found = self.coordinator.managed([self.url]).get(self.url)
        if found is None or found.last_version is not None:
            return self._checked(found)
        return self._settled(found)

    # -- reading -----------------------------------------------------------------------------------------------------------

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """See `LogStore.list_from`; of the log what the coordinator says, who is asked first."""
        managed = self.managed() if folder == LOG_FOLDER else None
        entries = self.inner.list_from(folder, start)
        if managed is None:
            return entries
        listed = {entry.name: entry for entry in entries if _counts(entry.name, managed)}
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
        """See `LogStore.walk`: the files as they lie in storage."""
        return self.inner.walk(folder)

    def folders(self, folder: str = "") -> list[str]:
        """See `FolderStore.folders`, which the inner store must have."""
        found: list[str] = self.inner.folders(folder)  # type: ignore[attr-defined]
        return found

    def has_folder(self, folder: str) -> bool:
        """See `FolderStore.has_folder`, which the inner store must have."""
        found: bool = self.inner.has_folder(folder)  # type: ignore[attr-defined]
        return found

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`."""
        if parse(name) is None or (managed := self.managed()) is None:
            return self.inner.head(name)
        if not _counts(name, managed):
            self._check_asked(name, managed)
            return None
        commit = _ratified(name, managed)
        return self.inner.head(name) if commit is None else _entry(commit)

    def get(self, name: str) -> bytes:
        """See `LogStore.get`."""
        return self._located(name, self.inner.get)

    def get_many(self, names: list[str]) -> list[bytes]:
        """See `LogStore.get_many`."""
        managed = self.managed() if any(parse(name) for name in names) else None
        if managed is None:
            return self.inner.get_many(names)
        if all(_counts(name, managed) for name in names):
            try:
                return self.inner.get_many([_place(name, managed) for name in names])
            except NotFound as error:
                logger.debug("a commit of %s moved while it was read: %s", self.url, error)
        return [self.get(name) for name in names]

    def open_input(self, name: str) -> pa.NativeFile:
        """See `LogStore.open_input`."""
        return self._located(name, self.inner.open_input)

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
        """Before a commit is proposed: no published commit may have its number already, however the coordinator came to not know of it.

        Raises:
            CorruptTable: ``TAHOE_COORDINATOR_BEHIND`` or ``TAHOE_UNRATIFIED_COMMIT`` where one has.
        """
        entry = self.inner.head(commit_name(version))
        if entry is None:
            return
        managed = self.managed()
        if managed is not None and managed.last_version is not None and managed.last_version < version:
            self._check_newer(managed, [entry])
            raise unknown_commit(self.url, repr(self.coordinator), version)

    def stage(self, version: int, data: bytes) -> StagedCommit:
        """Write a commit to where it may be ratified from.

        Raises:
            StorageFailure: it is not there afterwards.
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
            f"Storage did not take the commit of version {version} to table {self.url} for {name} ({error}); nothing was committed. "
            "Try again.",
            table=self.url,
            version=version,
            file=name,
        )

    def follow_up(self, staged: StagedCommit, outcome: PutOutcome) -> None:
        """Publish a commit that was ratified; delete one that was not. Neither can fail the commit: anybody can do it later.

        Raises:
            CorruptTable: ``TAHOE_COORDINATOR_BEHIND`` where it was refused by a coordinator that does not know the version before it.
        """
        lost = isinstance(outcome, Exists | Refused)
        managed = None
        if isinstance(outcome, Created):
            try:
                self.publish()
            except Exception:
                logger.exception(
                    "version %d of %s is ratified, but not published; a later commit does it", staged.version, self.url
                )
        try:
            managed = self.managed() if lost else None
            if lost and not _names(managed, staged):
                self.inner.delete(f"{STAGED_FOLDER}/{staged.file}")
        except TahoeError as error:
            logger.warning("what follows the commit of version %d of %s is left to others: %s", staged.version, self.url, error)
        if managed is not None and isinstance(outcome, Exists):
            self._check_known(managed, staged.version - 1)

    def publish(self) -> int | None:
        """Copy all ratified commits to their places in the log, oldest first; the last version, None where no coordinator manages the table.

        Raises:
            StorageFailure: storage does not take one; it can be done again.
            CorruptTable: another commit lies in the place of one, written by somebody who passed the coordinator by.
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
        """See `LogStore.delete`; a ratified commit is published before its staged file, or the file in its place, goes."""
        parsed = parse(name)
        version = staged_version(name) if parsed is None else parsed.version if parsed.kind == "commit" else None
        if version is not None and (managed := self.managed()) is not None and version in managed.commits:
            self.publish()
        self.inner.delete(name)

    # -- inside ------------------------------------------------------------------------------------------------------------

    def _located(self, name: str, read: Callable[[str], Answer]) -> Answer:
        """Read a name where the coordinator says it lies; it is asked again where a commit was published and cleaned away meanwhile."""
        if parse(name) is None:
            return read(name)
        for _ in range(_MOST_LOOKS):
            managed = self.managed()
            if managed is None:
                return read(name)
            if not _counts(name, managed):
                raise NotFound(
                    f"{name} of table {self.url} is newer than its last version, {managed.last_version}, as {self.coordinator!r} says.",
                    code="DELTA_LOG_FILE_NOT_FOUND",
                    table=self.url,
                    file=name,
                )
            place = _place(name, managed)
            try:
                return read(place)
            except NotFound:
                if place == name:
                    raise
        raise CorruptTable(
            f"Table {self.url}: {self.coordinator!r} names {place} as the commit {name}, and there is no such file. "
            "Restore it from a backup.",
            code="DELTA_LOG_FILE_NOT_FOUND",
            table=self.url,
            file=place,
        )

    def _checked(self, found: Managed | None) -> Managed | None:
        """What the coordinator knows, where each file is one of a staged commit: no name of its database leads elsewhere."""
        for version, commit in found.commits.items() if found else ():
            if staged_version(f"{STAGED_FOLDER}/{commit.file}") != version:
                raise CorruptTable(
                    f"Table {self.url}: {self.coordinator!r} names {commit.file!r} as the commit of version {version}, which is no name of a "
                    "staged commit. See who wrote to its database.",
                    code="TAHOE_UNRATIFIED_COMMIT",
                    table=self.url,
                    version=version,
                )
        return found

    def _check_last(self, managed: Managed, listed: dict[str, Entry], start: str) -> None:
        """The newest version is ratified, so its commit is there, though a listing may lag behind; else an old version would be shown."""
        last = managed.last_version
        if last is None or (name := commit_name(last)) in listed or name < f"{LOG_FOLDER}/{start}":
            return
        entry = self.inner.head(name)
        if entry is None:
            raise CorruptTable(
                f"Table {self.url}: {self.coordinator!r} says that version {last} is the last, and its commit {name} is missing. Restore it "
                "from a backup; where the table was deleted, tell the coordinator: forget(table.url).",
                code="DELTA_LOG_FILE_NOT_FOUND",
                table=self.url,
                version=last,
                file=name,
            )
        listed[name] = entry

    def _check_newer(self, managed: Managed, newer: Sequence[Entry]) -> None:
        """Of files that are newer than the last version: see `tahoe.coordinator.contradiction`. The coordinator is asked once more."""
        parsed = ((parse(entry.name), entry) for entry in newer)
        commits = [(path.version, entry) for path, entry in parsed if path is not None and path.kind == "commit"]
        if not commits or (now := self.managed()) is None or now.last_version is None:
            return
        last = now.last_version
        version = ratified_before(self.inner, [(version, entry) for version, entry in commits if version > last])
        if version is not None:
            raise forgotten(self.url, repr(self.coordinator), last, version)

    def _check_asked(self, name: str, managed: Managed) -> None:
        """Who follows a table asks for what comes after the last version; who asks for more may have seen what the coordinator forgot."""
        parsed = parse(name)
        if parsed is not None and managed.last_version is not None and parsed.version > managed.last_version + 1:
            newer = self.inner.list_from(LOG_FOLDER, commit_name(managed.last_version + 1).rpartition("/")[2])
            self._check_newer(managed, newer)

    def _check_known(self, managed: Managed, version: int) -> None:
        """A commit was made upon `version`, so the coordinator must have ratified it."""
        if managed.last_version is not None and managed.last_version < version:
            raise forgotten(self.url, repr(self.coordinator), managed.last_version, version)

    def _publish(self, commit: StagedCommit) -> bool:
        """Copy one to its place; False where another has done it, and cleaned up, since the coordinator was asked."""
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
                f"Storage did not take {name} of table {self.url}, a commit that {self.coordinator!r} has ratified ({outcome.error}). "
                "The commit counts all the same; publish it later.",
                table=self.url,
                file=name,
            )
        if self.inner.get(name) != data:
            raise CorruptTable(
                f"Table {self.url}: another commit than the one that {self.coordinator!r} has ratified lies at {name}, written by somebody "
                f"who did not ask it. What counts is {STAGED_FOLDER}/{commit.file}; find that writer, then delete {name}.",
                code="TAHOE_UNRATIFIED_COMMIT",
                table=self.url,
                version=commit.version,
                file=name,
            )
        return True

    def _put_plain(self, version: int, name: str, data: bytes) -> PutOutcome:
        """A commit to a table that is not managed: by its name, and where it brings the feature, it ratifies itself by that."""
        transaction_id = _id_if_it_brings_the_feature(name, data, self.url)
        if transaction_id is None:
            return self.inner.put_if_absent(name, data)
        self.coordinator.expect(self.url, version, transaction_id)
        outcome = self.inner.put_if_absent(name, data)
        if isinstance(outcome, Created):
            try:
                self.coordinator.adopt(self.url, version)
            except StorageFailure as error:
                logger.warning("that %s is managed by a coordinator is left to others to tell it: %s", self.url, error)
        return outcome

    def _settled(self, found: Managed) -> Managed | None:
        """Finish what a writer began who wanted to put the table under the coordinator, and may have died: see `Coordinator.expect`."""
        for version, transaction_id in found.expected:
            try:
                data = self.inner.get(commit_name(version))
            except NotFound:
                continue
            if _id_if_it_brings_the_feature(commit_name(version), data, self.url) == transaction_id:
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
                f"{name} of table {self.url} cannot be written over: {self.coordinator!r} says which commits the table has.",
                code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
                table=self.url,
                file=name,
            )
        self._check_known(managed, parsed.last_version)
        if any(version <= parsed.last_version for version in managed.commits):
            self.publish()


def _same(store: LogStore) -> LogStore:
    return store


def _counts(name: str, managed: Managed) -> bool:
    """Whether a file of the log is none of a version that the coordinator does not know."""
    parsed = parse(name)
    return parsed is None or managed.last_version is None or parsed.last_version <= managed.last_version


def _ratified(name: str, managed: Managed) -> StagedCommit | None:
    parsed = parse(name)
    return managed.commits.get(parsed.version) if parsed is not None and parsed.kind == "commit" else None


def _place(name: str, managed: Managed) -> str:
    commit = _ratified(name, managed)
    return name if commit is None else f"{STAGED_FOLDER}/{commit.file}"


def _names(managed: Managed | None, staged: StagedCommit) -> bool:
    """Whether the coordinator names a staged file all the same: a client below it may have repeated a question."""
    return managed is not None and any(commit.file == staged.file for commit in managed.commits.values())


def _entry(commit: StagedCommit) -> Entry:
    return Entry(commit_name(commit.version), commit.size, commit.modified_ms)


def _id_if_it_brings_the_feature(name: str, data: bytes, url: str) -> str | None:
    """The ``txnId`` of a commit that puts its table under a coordinator ('' where it has none); None for every other commit."""
    if not any(feature.encode() in data for feature in COORDINATED):
        return None
    actions = [action for _, action in parse_actions(name, data, url)]
    if not any(features_of(action) & COORDINATED for action in actions if isinstance(action, Protocol)):
        return None
    return next((action.transaction_id or "" for action in actions if isinstance(action, CommitInfo)), "")
