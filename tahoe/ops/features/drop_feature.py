"""ALTER TABLE … DROP FEATURE: remove a table feature, so that readers and writers without it can use the table again.

    clean: commits that remove all traces of the feature from the newest version (`tahoe.ops.features.removals`)
      │
      ├─ a writer feature ─────────────────► DROP FEATURE: the protocol without it
      │
      ├─ fast ─► three checkpoints ────────► DROP FEATURE: the protocol without it, with checkpointProtection
      │          Readers without the feature start at one of these checkpoints and need nothing older. Log cleanup may not delete
      │          a checkpoint before all older versions.
      │
      └─ TRUNCATE HISTORY ─► a checkpoint; if versions in the log still use the feature, the operation ends here with an error
                             that names the time to run it again ─► DROP FEATURE: the protocol without it, and no added feature

`checkpointProtection` is a proposal of the specification (checkpoint-protection.md); order, texts and errors are those of delta-spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tahoe.base.exceptions import InvalidRequest, StorageFailure, Unsupported
from tahoe.base.log_fields import about
from tahoe.base.progress import Progress, silent, tracked
from tahoe.base.wording import suggestion
from tahoe.log.checkpoints.checkpoint_reader import open_checkpoint
from tahoe.log.cleanup import clean_up_log
from tahoe.log.files.commits import read_commit
from tahoe.log.files.listing import Checkpoint, Listing
from tahoe.log.files.paths import LOG_FOLDER
from tahoe.log.replay import add_files
from tahoe.log.segment import checkpoints_in
from tahoe.ops.features.compat import readers_of
from tahoe.ops.features.drop_report import FeatureDrop
from tahoe.ops.features.removals import REMOVALS, Removal, Work
from tahoe.ops.tables.requests import DropRequest
from tahoe.protocol.actions import Action, CheckpointMetadata, DomainMetadata, Metadata, Protocol, SidecarFile
from tahoe.protocol.features import FEATURES, Feature, TableFeature, feature_named
from tahoe.protocol.properties import is_table_property
from tahoe.protocol.protocols import dependents_of, features_of, without_feature
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.txn.after_commit import logged_after_commit
from tahoe.txn.commit import Committed
from tahoe.txn.hooks import checkpoint_snapshot, rewrite_checksum
from tahoe.txn.retries import retried
from tahoe.txn.transaction import Operation, Transaction

_PROTECTION, _PROTECTS = Feature.CHECKPOINT_PROTECTION, "delta.requireCheckpointProtectionBeforeVersion"
_WAIT = "delta.dropFeatureTruncateHistory.retentionDuration"
_BARRIERS = 3
_CHECKPOINT_ATTEMPTS = 3
_MINUTE_MS = 60_000


def drop_feature(
    begin: Callable[[], Transaction],
    commit: Callable[[Transaction, Operation], Committed],
    request: DropRequest,
    progress: Progress = silent,
) -> FeatureDrop:
    """Drop a feature from a table. Concurrent reads and writes are allowed; traces of the feature that they add are removed too.

    Args:
        begin, commit: `Table.begin` and `Table.commit`.
        progress: called with the numbers of footers read, files rewritten and commits read.

    Raises:
        NotFound: there is no table.
        InvalidRequest: ``DELTA_FEATURE_DROP_…``: the table does not have the feature, another feature needs it, older versions still use it
            (``…_WAIT_FOR_RETENTION_PERIOD``, ``…_HISTORICAL_VERSIONS_EXIST``), or another writer used it again.
        Unsupported: ``DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE``, ``DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE``.
        StorageFailure: ``DELTA_FEATURE_DROP_CHECKPOINT_FAILED``.
        DeltaConcurrentModificationException: other writers changed the same files repeatedly.
    """
    snapshot = begin().existing()
    feature, removal = _checked(snapshot, request)
    drop = _Drop(Work(begin, commit, progress, request.is_fast), feature, removal, request)
    planned = drop.planned(snapshot)
    return planned if request.dry_run else drop.run(planned)


def _checked(snapshot: Snapshot, request: DropRequest) -> tuple[TableFeature, Removal]:
    """Return the feature and its removal. Raises if the feature cannot be dropped."""
    url, asked, protocol = snapshot.store.url, request.name, snapshot.protocol
    feature = feature_named(asked)
    if feature is None or feature.name not in features_of(protocol):
        raise _not_there(url, asked, feature)
    removal = REMOVALS.get(feature.name)
    if removal is None and feature.removal is None:
        raise Unsupported(
            f"Cannot drop the feature {feature.name} from table {url}: its removal is not supported. Copy the rows to a new table "
            "without it.",
            code="DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
            table=url,
            feature=feature.name,
        )
    if removal is None:
        raise _unsupported(url, feature.name)
    if request.truncate_history and removal.uses is None and feature.name != _PROTECTION:
        raise InvalidRequest(
            f"TRUNCATE HISTORY is only for features that readers must know and for {_PROTECTION}; {feature.name} of table {url} is one of "
            "writers. Leave it out.",
            code="DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
            table=url,
            feature=feature.name,
        )
    if feature.name == _PROTECTION and not request.truncate_history:
        raise InvalidRequest(
            f"{_PROTECTION} of table {url} can only be dropped together with the versions that it protects: add TRUNCATE HISTORY "
            "(truncate_history=True).",
            code="DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
            table=url,
        )
    dependents = dependents_of(feature.name, protocol)
    if dependents:
        raise InvalidRequest(
            f"Cannot drop the feature {feature.name} from table {url}: {', '.join(dependents)} need it. Drop these first, if possible.",
            code="DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
            table=url,
            feature=feature.name,
            dependents=dependents,
        )
    return feature, removal


def _gained(before: Protocol, after: Protocol) -> tuple[str, ...]:
    """Return the engines that can read a table with the protocol `after` but not with `before`."""
    readers_before = readers_of(before)
    return tuple(name for name in readers_of(after) if name not in readers_before)


def _not_there(url: str, asked: str, feature: TableFeature | None) -> InvalidRequest | Unsupported:
    if feature is not None:
        return InvalidRequest(
            f"Table {url} does not have the feature {feature.name}, so there is nothing to drop. DESCRIBE DETAIL (Table.detail) lists those "
            "that it has.",
            code="DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
            table=url,
            feature=feature.name,
        )
    if is_table_property(asked):
        return InvalidRequest(
            f"'{asked}' is a property of tables, not a feature; it was requested for table {url}. Unset it with ALTER TABLE … "
            "UNSET TBLPROPERTIES.",
            code="DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY",
            table=url,
            property=asked,
        )
    return _unsupported(url, asked)


def _unsupported(url: str, name: str) -> Unsupported:
    return Unsupported(
        f"This version of Tahoe cannot drop the feature '{name}' from table {url}.{suggestion(name, FEATURES)} Check its spelling, or "
        "drop it with a client that knows it.",
        code="DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
        table=url,
        feature=name,
    )


@dataclass(frozen=True, slots=True)
class _Drop:
    """The removal of a feature from a table."""

    work: Work
    feature: TableFeature
    removal: Removal
    request: DropRequest

    @property
    def _has_barrier(self) -> bool:
        """Whether checkpoints hide the older versions."""
        return self.removal.uses is not None and self.request.is_fast and not self.request.truncate_history

    # -- the plan ----------------------------------------------------------------------------------------------------------

    def planned(self, snapshot: Snapshot) -> FeatureDrop:
        adds = self.removal.files(snapshot, self.work.progress)
        dry = self.request.dry_run
        after = self._protocol(snapshot)
        return FeatureDrop(
            table=snapshot.store.url,
            feature=self.feature.name,
            truncate_history=self.request.truncate_history,
            steps=tuple(self._steps(snapshot)),
            files=len(adds),
            size=sum(add.size for add in adds),
            protocol=after,
            obstacle=self._obstacle(snapshot) if dry else None,
            gained=_gained(snapshot.protocol, after) if dry else (),
        )

    def _steps(self, snapshot: Snapshot) -> list[str]:
        steps = self.removal.steps(snapshot) if self._has_work(snapshot) else []
        if self._has_barrier:
            steps.append(
                f"{_BARRIERS} checkpoints are written, behind which older versions are hidden from readers without the feature"
            )
        elif self.removal.uses is not None or self.feature.name == _PROTECTION:
            steps.append("a checkpoint is written, and versions before it that are old enough leave the log")
        steps.append(f"the protocol loses {self.feature.name}" + (f" and gets {_PROTECTION}" if self._has_barrier else ""))
        return steps

    def _has_work(self, snapshot: Snapshot) -> bool:
        return bool(self.removal.traces(snapshot)) or self.feature.name == Feature.DELETION_VECTORS

    def _obstacle(self, snapshot: Snapshot) -> str | None:
        """Return the message of the error that a run would raise, as far as it is predictable."""
        if self.removal.obstacles and (names := self.removal.traces(snapshot)):
            return f"It cannot: the {self.removal.obstacles} {', '.join(names)} must be dropped first."
        if self.feature.name == _PROTECTION:
            protected = snapshot.config.properties.checkpoints_protected_before
            return None if _is_truncated_before(snapshot.store, protected) else self._must_wait(snapshot)
        if self.removal.uses is None or self._has_barrier:
            return None
        if self.removal.traces(snapshot):
            return self._must_wait(snapshot)
        oldest = _oldest_use(snapshot.store, self.removal, snapshot.version, self.work.progress)
        return None if oldest is None else f"Version {oldest} in the log shows the feature. {self._must_wait(snapshot)}"

    def _must_wait(self, snapshot: Snapshot) -> str:
        properties = snapshot.config.properties
        hours = properties.get(_WAIT) / 3_600_000 if self.request.truncate_history else properties.log_retention_ms / 3_600_000
        key = _WAIT if self.request.truncate_history else "delta.logRetentionDuration"
        return f"Run it again when {hours:g} hours have passed ({key}): versions in the log that show the feature must have left it by then."

    # -- the run -----------------------------------------------------------------------------------------------------------

    def run(self, planned: FeatureDrop) -> FeatureDrop:
        if self.feature.name == _PROTECTION:
            self._truncate_protected()
        had_traces = self.removal.clean(self.work)
        if self._has_barrier:
            for _ in range(_BARRIERS):
                self._checkpoint_of_new_version()
        elif self.removal.uses is not None:
            self._checkpoint_of_new_version()
            if had_traces:
                raise self._wait_for_retention(self.work.begin().existing())
            self._truncate_history()
        committed = retried(self._drop)
        if self._has_barrier:
            url = committed.snapshot.store.url
            step = "%s lost the feature, but not all is done that follows it"
            with logged_after_commit(step, url, extra=about(url, committed.version)):
                self._checkpoint(committed.snapshot)
        return replace(planned, version=committed.version, protocol=committed.snapshot.protocol)

    def _checkpoint_of_new_version(self) -> None:
        self._checkpoint(self.work.commit(self.work.begin(), Operation("Empty Commit")).snapshot)

    def _checkpoint(self, snapshot: Snapshot) -> None:
        """Write the checkpoint of a version, and check that it exists."""
        failure: Exception | None = None
        for _ in range(_CHECKPOINT_ATTEMPTS):
            try:
                checkpoint_snapshot(snapshot, self.work.begin().clock)
                rewrite_checksum(snapshot)  # tombstones of vectors break the checksum chain
            except StorageFailure as error:
                failure = error
                continue
            if snapshot.version in checkpoints_in(snapshot.store.list_from(LOG_FOLDER, f"{snapshot.version:020d}")):
                return
        raise StorageFailure(
            f"The feature {self.feature.name} was not dropped from table {snapshot.store.url}: the checkpoint of version {snapshot.version} "
            f"could not be written. Run it again.{'' if failure is None else f' ({failure})'}",
            code="DELTA_FEATURE_DROP_CHECKPOINT_FAILED",
            table=snapshot.store.url,
            version=snapshot.version,
            feature=self.feature.name,
        ) from failure

    def _clean_up(self, snapshot: Snapshot) -> None:
        """Delete versions that are old enough from the log."""
        now_ms = self.work.begin().clock.now_ms()
        if self.request.truncate_history:
            retention_ms = int(snapshot.config.properties.get(_WAIT))
            clean_up_log(snapshot.store, snapshot.config, now_ms, retention_ms=retention_ms, granularity_ms=_MINUTE_MS)
        else:
            clean_up_log(snapshot.store, snapshot.config, now_ms)

    def _truncate_history(self) -> None:
        snapshot = self.work.begin().existing()
        self._clean_up(snapshot)
        oldest = _oldest_use(snapshot.store, self.removal, snapshot.version, self.work.progress)
        if oldest is not None:
            raise InvalidRequest(
                f"Cannot drop the feature {self.feature.name} from table {snapshot.store.url} yet: version {oldest} in its log shows it. "
                + self._must_wait(snapshot),
                code="DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
                table=snapshot.store.url,
                feature=self.feature.name,
                version=oldest,
            )

    def _truncate_protected(self) -> None:
        snapshot = self.work.begin().existing()
        before = snapshot.config.properties.checkpoints_protected_before
        if _is_truncated_before(snapshot.store, before):
            return
        # Log cleanup ends at a checkpoint, so there must be a checkpoint that is newer than all versions to delete.
        self._checkpoint_of_new_version()
        self._clean_up(self.work.begin().existing())
        if not _is_truncated_before(snapshot.store, before):
            raise InvalidRequest(
                f"Cannot drop the feature {_PROTECTION} from table {snapshot.store.url} yet: its log still contains versions "
                f"before {before}, "
                f"which are protected. {self._must_wait(snapshot)}",
                code="DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
                table=snapshot.store.url,
                version=before,
            )

    def _wait_for_retention(self, snapshot: Snapshot) -> InvalidRequest:
        return InvalidRequest(
            f"Table {snapshot.store.url} shows nothing of the feature {self.feature.name} any more, but older versions in its log do. "
            + self._must_wait(snapshot),
            code="DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
            table=snapshot.store.url,
            feature=self.feature.name,
        )

    def _drop(self) -> Committed:
        """Commit the protocol without the feature, unless the newest version has traces of it."""
        transaction = self.work.begin()
        snapshot = transaction.existing()
        self._check_clean(snapshot)
        transaction.may_be_moved = False
        transaction.set_protocol(self._protocol(snapshot))
        transaction.set_metadata(self._metadata(snapshot))
        domain = snapshot.state.domains.get(self.removal.domain or "")
        if domain is not None:
            transaction.stage(DomainMetadata(domain.domain, domain.configuration, removed=True))
        parameters = {"featureName": self.feature.name, "truncateHistory": self.request.truncate_history}
        return self.work.commit(transaction, Operation("DROP FEATURE", parameters))

    def _check_clean(self, snapshot: Snapshot) -> None:
        left = self.removal.traces(snapshot)
        if self.removal.is_of_checkpoint and depends_on_v2_checkpoint(snapshot):
            left = [*left, "a V2 checkpoint that it is read from"]
        if left:
            raise InvalidRequest(
                f"Cannot drop the feature {self.feature.name} from table {snapshot.store.url}: another writer used it again; "
                f"version {snapshot.version} has {', '.join(left)}. Run DROP FEATURE again after that writer has ended.",
                code="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
                table=snapshot.store.url,
                version=snapshot.version,
                feature=self.feature.name,
            )

    def _protocol(self, snapshot: Snapshot) -> Protocol:
        return without_feature(snapshot.protocol, self.feature.name, adding=(_PROTECTION,) if self._has_barrier else ())

    def _metadata(self, snapshot: Snapshot) -> Metadata:
        gone = {key.lower() for key in self.removal.properties}
        configuration = {key: value for key, value in snapshot.metadata.configuration.items() if key.lower() not in gone}
        if self._has_barrier:
            configuration[_PROTECTS] = str(snapshot.version + 1)
        return replace(snapshot.metadata, configuration=configuration)


# -- traces in older versions ----------------------------------------------------------------------------------------------------


def _oldest_use(store: LogStore, removal: Removal, version: int, progress: Progress = silent) -> int | None:
    """Return the oldest version in the log, up to `version`, in which readers need a feature; None if there is none.

    In the earliest checkpoint, live files count and tombstones do not: no version in the log reads these removed files.

    Args:
        removal: the removal of the feature.
    """
    if removal.uses is None:
        return None
    listing = Listing.read(store, None)
    uses = [_in_commits(store, removal, listing, version, progress)]
    checkpoints = sorted(number for number in listing.complete_checkpoints if number <= version)
    if removal.is_of_checkpoint:
        uses += [number for number in checkpoints if any(_is_v2(store, part) for part in listing.complete_checkpoints[number])]
    elif checkpoints:
        earliest = Snapshot.at(store, checkpoints[0])
        state: list[Action] = [earliest.metadata, *add_files(earliest.files())]
        uses += [earliest.version] if any(map(removal.uses, state)) else []
    return min((use for use in uses if use is not None), default=None)


def _in_commits(store: LogStore, removal: Removal, listing: Listing, version: int, progress: Progress) -> int | None:
    assert removal.uses is not None
    versions = sorted(number for number in listing.commits if number <= version)
    for number in tracked(versions, progress, "commits read", len(versions)):
        if any(map(removal.uses, read_commit(store, number))):
            return number
    return None


def depends_on_v2_checkpoint(snapshot: Snapshot) -> bool:
    """Whether a version is read from a V2 checkpoint, regardless of the checkpoint's file name."""
    checkpoint = Snapshot.at(snapshot.store, snapshot.version).segment.checkpoint
    return checkpoint is not None and _is_v2(snapshot.store, checkpoint)


def _is_v2(store: LogStore, checkpoint: Checkpoint) -> bool:
    if checkpoint.kind == "uuid":
        return True
    actions = _v2_actions(store, checkpoint) if checkpoint.kind == "classic" else iter(())
    return next(actions, None) is not None


def _v2_actions(store: LogStore, checkpoint: Checkpoint) -> Iterator[Action]:
    return (
        action
        for action in open_checkpoint(store, checkpoint).single_actions
        if isinstance(action, CheckpointMetadata | SidecarFile)
    )


def _is_truncated_before(store: LogStore, version: int) -> bool:
    """Whether the log has no commit before `version`, and its first checkpoint is of `version` or later."""
    if version <= 0:
        return True
    listing = Listing.read(store, None)
    return all(number >= version for number in listing.commits) and min(listing.complete_checkpoints, default=-1) >= version
