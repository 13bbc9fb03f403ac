"""Cross-checks of the parts of a log: checkpoint, hint, checksums, commits. A mismatch is corruption.

A checksum counts only if it was made for its version, and `_last_checkpoint` only for the checkpoint that it names.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.base.lazy import pc
from tahoe.base.log_fields import about
from tahoe.base.wording import counted
from tahoe.log.checkpoints.checkpoint_reader import CheckpointReader
from tahoe.log.checkpoints.parquet_source import DamagedCheckpoint
from tahoe.log.checksum import VersionChecksum, read_checksum, state_differences
from tahoe.log.commit_identity import check_times
from tahoe.log.files.commit_checksum import CHECKSUM_MEMBER
from tahoe.log.files.commits import parse_commit, read_commit
from tahoe.log.files.last_checkpoint import LastCheckpoint
from tahoe.log.files.live_files import add_files, file_keys, files_table, key_of
from tahoe.log.files.paths import checksum_name, commit_name
from tahoe.log.segment import LogSegment
from tahoe.log.tail import Tail
from tahoe.log.totals import FileTotals
from tahoe.protocol.actions import Action, AddFile, CommitInfo, Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.table_state import TableState
from tahoe.store.log_store import LogStore

logger = logging.getLogger(__name__)

T = TypeVar("T")


def check_checkpoint(store: LogStore, reader: CheckpointReader, hint: LastCheckpoint | None, tail: Tail) -> None:
    """Check a checkpoint by its footers, before any file is read: it can be valid Parquet and still lack actions.

    Raises:
        DamagedCheckpoint: it lacks actions that the hint or a checksum counts.
        CorruptTable: ``DELTA_STATE_RECOVER_ERROR`` if its writer left out protocol or metadata.
    """
    checkpoint = reader.checkpoint
    missing = [name for name, kind in _REQUIRED.items() if newest(reader.single_actions, kind) is None]
    if missing and not reader.actions and (hint is None or hint.size - reader.num_actions == len(missing)):
        # Only JSON files lose lines, so it was not truncated: its writer left the actions out. That writer may have made other mistakes, so
        # nothing replaces the checkpoint.
        raise no_state(store, checkpoint.version, " and a ".join(missing), f"the checkpoint {checkpoint.names[0]} has none")
    fault = f"it has no {' and no '.join(missing)} action" if missing else None
    checksum = tail.checkpoint_checksum
    if hint is not None and hint.num_of_add_files not in (None, reader.num_adds):
        fault = f"it has {reader.num_adds} live files, but _last_checkpoint says {hint.num_of_add_files}"
    elif hint is not None and reader.num_actions < hint.size:
        fault = f"it has {reader.num_actions} actions, but _last_checkpoint says {hint.size}"
    elif checksum is not None and checksum.num_files != reader.num_adds and _is_of(store, checksum, checkpoint.version):
        fault = f"it has {reader.num_adds} live files, but {checksum_name(checkpoint.version)} says {checksum.num_files}"
    if fault is not None:
        raise DamagedCheckpoint(store.url, checkpoint, checkpoint.names[0], fault)


def check_adds_of_checkpoint(
    store: LogStore, reader: CheckpointReader, hint: LastCheckpoint | None, tail: Tail, adds: pa.Table
) -> None:
    """Check the live files of a checkpoint, once all are read: their total size, and that none occurs twice.

    Args:
        adds: all `add` actions of the checkpoint, with the columns ``path``, ``size``, ``deletionVector``.
    """
    checkpoint, checksum = reader.checkpoint, tail.checkpoint_checksum
    fault = None
    size = pc.sum(adds.column("size"), min_count=0).as_py()
    if checksum is not None and checksum.table_size_bytes != size and _is_of(store, checksum, checkpoint.version):
        fault = f"its files have {size} bytes, but {checksum_name(checkpoint.version)} says {checksum.table_size_bytes}"
    elif checksum is None and (hint is None or hint.num_of_add_files is None):
        # The number of files is not known from elsewhere, and a duplicate would be read twice.
        keys = pa.chunked_array([file_keys(batch, store.url) for batch in adds.to_batches()], pa.string())
        twice = adds.num_rows - pc.count_distinct(keys).as_py()
        fault = f"it lists {counted(twice, 'file')} more than once" if twice else None
    if fault is not None:
        raise DamagedCheckpoint(store.url, checkpoint, checkpoint.names[0], fault)


def check_state(store: LogStore, segment: LogSegment, state: TableState, tail: Tail) -> None:
    """Check the commits' order, and protocol, metadata, transactions and domains against the version's checksum."""
    check_times(tail.identities, TableConfig(state.protocol, state.metadata, store.url))
    if tail.checksum is not None:
        if state.transaction_id is not None and state.transaction_id == tail.checksum.transaction_id:
            state = _without_other_time(store, segment, state, tail.checksum)
        checkpoints = () if segment.checkpoint is None else segment.checkpoint.entries
        written_ms = max((segment.last_modified_ms, *(entry.modified_ms for entry in checkpoints))) if checkpoints else None
        _report(store, segment, tail, contradictions(tail.checksum, state, written_ms=written_ms))


def check_files(store: LogStore, segment: LogSegment, files: pa.Table, tail: Tail) -> None:
    """Check the live files against the version's checksum."""
    if tail.checksum is not None:
        wrong = tail.checksum.totals.differences(FileTotals.of(files, histograms=False))
        # Few writers list the files in a checksum. Only then must the rows be converted to actions.
        if not wrong and tail.checksum.all_files is not None and files.num_rows <= _MOST_FILES_COMPARED:
            wrong = _files_differences(tail.checksum.all_files, add_files(files), store.url)
        _report(store, segment, tail, wrong)


def may_contradict(tail: Tail, num_adds: int) -> bool:
    """Whether footers and commits alone contradict the version's checksum, so that the live files must be checked.

    Args:
        num_adds: the number of live files in the checkpoint, by its footers.
    """
    checksum, before, net = tail.checksum, tail.checkpoint_checksum, tail.net
    if checksum is None:
        return False
    if checksum.num_files != num_adds + tail.net_files:
        return True
    return before is not None and net is not None and bool(checksum.totals.differences(before.totals.plus(net)))


def contradictions(
    checksum: VersionChecksum,
    state: TableState,
    files: Sequence[AddFile] | FileTotals | None = None,
    *,
    url: str = "",
    written_ms: int | None = None,
) -> list[str]:
    """Describe the differences between a version's checksum and the log, each as "<member> <value>, but the log gives <other value>".

    Args:
        state: of the version; its transaction id and in-commit timestamp are compared if they are known.
        files: the live files, or their totals; None compares neither.
        url: the table's URL; needed only if the log uses absolute paths.
        written_ms: see `tahoe.log.checksum.state_differences`.
    """
    wrong = state_differences(checksum, state, written_ms=written_ms)
    if isinstance(files, FileTotals):
        wrong += checksum.totals.differences(files)
    elif files is not None:
        totals = FileTotals.of(files_table(files))
        wrong += checksum.totals.differences(totals) or _files_differences(checksum.all_files, files, url)
    return wrong


def read_verified_commit(store: LogStore, version: int, data: bytes | None = None) -> tuple[Action, ...]:
    """Read a commit as `read_commit`; a commit without an embedded checksum or a transaction id is checked against its checksum.

    For callers that read a single commit, without the rest of the log.

    Args:
        data: the commit's bytes, if they were read already.

    Raises `CorruptTable` for a commit with neither an embedded checksum nor a transaction id, if its checksum was made from a commit
    with an id.
    """
    actions = read_commit(store, version) if data is None else parse_commit(commit_name(version), data, store.url)
    if not identifies_itself(actions):
        try:
            checksum = read_checksum(store, version)
        except CorruptTable as error:
            logger.warning("%s", error.message)
            return actions
        if checksum is not None and checksum.transaction_id is not None:
            raise CorruptTable(
                f"Table {store.url}: {lost_its_id(version)} Restore the commit from a backup.",
                code="DELTA_TXN_LOG_FAILED_INTEGRITY",
                table=store.url,
                version=version,
                file=commit_name(version),
            )
    return actions


def identifies_itself(actions: Sequence[Action]) -> bool:
    """Whether a commit identifies itself: by its embedded checksum, or by the id of its transaction."""
    info = newest(actions, CommitInfo)
    return info is not None and (CHECKSUM_MEMBER in info.values or info.transaction_id is not None)


def lost_its_id(version: int) -> str:
    """Return the message for a commit that has lost its transaction id, which its checksum still has."""
    return (
        f"the commit {commit_name(version)} has no transaction id, but its checksum {checksum_name(version)} was made of one that had: "
        "the commit has lost lines."
    )


def no_state(store: LogStore, version: int, missing: str, why: str) -> CorruptTable:
    """The error of a log that gives no protocol or no metadata."""
    return CorruptTable(
        f"Table {store.url}: the state of version {version} cannot be recovered, because it needs a {missing} action and {why}. "
        "Restore the commit or checkpoint that lacks it from a backup.",
        code="DELTA_STATE_RECOVER_ERROR",
        table=store.url,
        version=version,
        action=missing,
    )


def newest(actions: Sequence[Action], kind: type[T]) -> T | None:
    """Return the last action of a kind, or None."""
    return next((action for action in reversed(actions) if isinstance(action, kind)), None)


_REQUIRED: dict[str, type] = {"protocol": Protocol, "metaData": Metadata}


def _without_other_time(store: LogStore, segment: LogSegment, state: TableState, checksum: VersionChecksum) -> TableState:
    """Log two different times of one transaction, and compare no times then: no rows are lost. Time travel uses the commit's time."""
    stated, mine = checksum.in_commit_timestamp, state.in_commit_timestamp
    if stated is not None and mine is not None and stated != mine:
        message = "%s: version %d was committed at %d by its commit and at %d by its checksum, in milliseconds since 1970"
        logger.warning(message, store.url, segment.version, mine, stated, extra=about(store.url, segment.version))
    return replace(state, in_commit_timestamp=None)


# A checksum that lists the live files lists few of them.
_MOST_FILES_COMPARED = 100


def _files_differences(listed: Sequence[AddFile] | None, files: Sequence[AddFile], url: str) -> list[str]:
    """Compare the files listed in a checksum with the live files, except their statistics, which writers may spell differently."""
    if listed is None:
        return []
    stated, mine = ({key_of(file, url): _compared(file) for file in each} for each in (listed, files))
    wrong = sorted(key for key in stated.keys() | mine.keys() if stated.get(key) != mine.get(key))
    return [f"allFiles that the log gives otherwise ({', '.join(wrong[:3])})"] if wrong else []


def _compared(file: AddFile) -> tuple[object, ...]:
    return file.size, sorted((name, value or "") for name, value in file.partition_values.items())


def _report(store: LogStore, segment: LogSegment, tail: Tail, differences: Sequence[str]) -> None:
    """Raise the error for differences from a trustworthy checksum: that of the checkpoint, or of the log if there is none."""
    if not differences or tail.checksum is None or not _is_of(store, tail.checksum, segment.version):
        return
    stated = "; ".join(differences)
    name = checksum_name(segment.version)
    begin = f"Table {store.url}: at version {segment.version} the checksum {name} says {stated}."
    if segment.checkpoint is not None:
        file = segment.checkpoint.names[0]
        message = (
            f"{begin} The checkpoint {file} is short, a commit after it has lost lines or is not in its place, or the checksum is "
            "wrong: restore the damaged one from a backup, or delete the checksum if another reader confirms the log."
        )
        raise DamagedCheckpoint(store.url, segment.checkpoint, file, stated, message)
    raise CorruptTable(
        f"{begin} A commit has lost lines or is not in its place, or the checksum is wrong: restore the damaged commit from a "
        "backup, or delete the checksum if another reader confirms the log.",
        code="DELTA_TXN_LOG_FAILED_INTEGRITY",
        table=store.url,
        version=segment.version,
        file=name,
    )


def _is_of(store: LogStore, checksum: VersionChecksum, version: int) -> bool:
    """Whether the checksum was made for this version, by the transaction ids.

    If the ids differ, the checksum file or the commit belongs to another version. A commit with an embedded checksum proves that it is the
    checksum file, which can be ignored. Otherwise it is unknown, and the checksum file is assumed to be correct.
    """
    if checksum.transaction_id is None:
        return True
    try:
        actions = read_commit(store, version)
    except (NotFound, CorruptTable):
        return True
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    if info is None or info.transaction_id in (None, checksum.transaction_id) or CHECKSUM_MEMBER not in info.values:
        return True
    message = "%s/%s is of another transaction than its commit and was not used"
    logger.warning(message, store.url, checksum_name(version), extra=about(store.url, version))
    return False
