"""Writes version checksums: from the one before and a commit alone, or of a version whose live files are at hand."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable
from tahoe.base.log_fields import about
from tahoe.log.checksum import VersionChecksum, encode_checksum, read_checksum, state_differences
from tahoe.log.files.paths import checksum_name
from tahoe.log.files.removed_files import adds_in, removes_in, single_actions
from tahoe.log.totals import FileTotals
from tahoe.protocol.actions import Action, DomainMetadata, Metadata, Protocol, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import Feature
from tahoe.protocol.table_state import TableState
from tahoe.store.log_store import Created, Exists, LogStore

logger = logging.getLogger(__name__)


def checksum_of(state: TableState, files: pa.Table, config: TableConfig) -> VersionChecksum:
    """The checksum of a version whose live files are at hand.

    Args:
        files: with the columns ``size`` and ``deletionVector`` of `tahoe.log.replay.FILES_SCHEMA`.
    """
    return _checksum(state, FileTotals.of(files), config)


def checksum_after(
    previous: VersionChecksum | None, state: TableState, actions: Sequence[Action], url: str, *, adds_again: bool
) -> VersionChecksum | None:
    """Compute the checksum of a new version from the previous checksum and the commit alone.

    Args:
        previous: of the version before; None for the commit that makes version 0.
        state: after the commit.
        actions: of the commit.
        url: the table's URL, for messages.
        adds_again: whether the commit adds files that the table has, with other statistics, tags or row ids.

    Returns:
        None if the commit is not sufficient: a removed file lacks its size, or added files are already in the table.
    """
    adds, removes = adds_in(actions), removes_in(actions)
    if adds_again or (adds and not removes and not any(add.data_change for add in adds)):
        return None
    totals = (FileTotals.empty() if previous is None else _counted(previous, url)).after(adds, removes)
    if totals is None or totals.num_files < 0 or totals.size_bytes < 0:
        return None
    return _checksum(state, totals, TableConfig(state.protocol, state.metadata, url))


def write_checksum_after(
    store: LogStore,
    version: int,
    state: TableState,
    actions: Sequence[Action],
    files: pa.Table | None = None,
    *,
    adds_again: bool = False,
) -> VersionChecksum | None:
    """Write the checksum of the version that a commit made, if the version before has a correct one; return it.

    Args:
        state: after the commit.
        actions: of the commit.
        files: the live files after the commit, if they are in memory: the checksum must agree with them, and can be computed from them
            alone if the version before has no checksum.
        adds_again: see `checksum_after`.
    """
    previous = _previous(store, version, state, actions)
    checksum = None
    if previous is not None or not version:
        checksum = checksum_after(previous, state, actions, store.url, adds_again=adds_again)
    if files is not None and checksum is not None:
        wrong = checksum.totals.differences(FileTotals.of(files, histograms=False))
        if wrong:
            name = checksum_name(version - 1)
            logger.warning(
                "%s: %s was not carried forward, for it leads to %s",
                store.url,
                name,
                "; ".join(wrong),
                extra=about(store.url, version),
            )
            return None
    elif files is not None:
        checksum = checksum_of(state, files, TableConfig(state.protocol, state.metadata, store.url))
    return checksum if checksum is not None and write_checksum(store, version, checksum) else None


def write_checksum_from(
    store: LogStore, previous: VersionChecksum, version: int, state: TableState, actions: Sequence[Action], *, adds_again: bool
) -> VersionChecksum | None:
    """Write the checksum of the version that a commit made, from the checksum of the version before; see `write_checksum_after`.

    Args:
        previous: as read; None is returned if it contradicts the log, without the warning of `write_checksum_after`.
    """
    if _contradictions(previous, state, actions):
        return None
    checksum = checksum_after(previous, state, actions, store.url, adds_again=adds_again)
    return checksum if checksum is not None and write_checksum(store, version, checksum) else None


def write_checksum(store: LogStore, version: int, checksum: VersionChecksum) -> bool:
    """Write the checksum of a version unless it has one; True when it was written now."""
    outcome = store.put_if_absent(checksum_name(version), encode_checksum(version, checksum))
    if not isinstance(outcome, Created | Exists):
        logger.warning(
            "%s/%s was not written: %s", store.url, checksum_name(version), outcome.error, extra=about(store.url, version)
        )
    return isinstance(outcome, Created)


def _checksum(state: TableState, totals: FileTotals, config: TableConfig) -> VersionChecksum:
    if Feature.DELETION_VECTORS not in config.features:
        totals = totals.without_vectors()
    return VersionChecksum(
        table_size_bytes=totals.size_bytes,
        num_files=totals.num_files,
        protocol=state.protocol,
        metadata=state.metadata,
        transaction_id=state.transaction_id,
        in_commit_timestamp=state.in_commit_timestamp if config.in_commit_timestamps else None,
        transactions=tuple(state.transactions.values()),
        domains=tuple(state.domains.values()),
        num_deleted_records=totals.num_deleted_records,
        num_deletion_vectors=totals.num_deletion_vectors,
        deleted_record_counts=totals.deleted_record_counts,
        file_sizes=totals.sizes,
    )


def _counted(previous: VersionChecksum, url: str) -> FileTotals:
    """Return the totals of the previous checksum, with no deletion vectors if they were not in use."""
    in_use = Feature.DELETION_VECTORS in TableConfig(previous.protocol, previous.metadata, url).features
    return previous.totals if in_use else previous.totals.with_no_vectors()


def _previous(store: LogStore, version: int, state: TableState, actions: Sequence[Action]) -> VersionChecksum | None:
    """Read the checksum of the version before; None if there is none, or, with a warning, if it contradicts the log before the commit."""
    if not version:
        return None
    try:
        previous = read_checksum(store, version - 1)
    except CorruptTable as error:
        logger.warning("%s", error.message, extra=about(store.url, version - 1))
        return None
    wrong = [] if previous is None else _contradictions(previous, state, actions)
    if wrong:
        name, record = checksum_name(version - 1), about(store.url, version - 1)
        logger.warning("%s: %s was not carried forward, for it says %s", store.url, name, "; ".join(wrong), extra=record)
        return None
    return previous


def _contradictions(previous: VersionChecksum, state: TableState, actions: Sequence[Action]) -> list[str]:
    """Describe the differences between the checksum of the version before a commit and the log: the parts that the commit did not change
    must be the same before and after it.
    """
    return state_differences(_untouched(previous, state, actions), replace(state, transaction_id=None, in_commit_timestamp=None))


def _untouched(previous: VersionChecksum, state: TableState, actions: Sequence[Action]) -> VersionChecksum:
    """Return the checksum with the parts that the commit changed replaced by the commit's."""
    others = list(single_actions(actions))
    kinds = {type(action) for action in others}
    applications = {action.app_id for action in others if isinstance(action, SetTransaction)}
    names = {action.domain for action in others if isinstance(action, DomainMetadata)}
    domains = None
    if previous.domains is not None:
        unchanged = [domain for domain in previous.domains if domain.domain not in names]
        domains = (*unchanged, *(domain for name, domain in state.domains.items() if name in names))
    return replace(
        previous,
        protocol=state.protocol if Protocol in kinds else previous.protocol,
        metadata=state.metadata if Metadata in kinds else previous.metadata,
        transactions=tuple(t for t in previous.transactions or () if t.app_id not in applications),
        domains=domains,
    )
