"""Whether the parts of a log agree with each other: checkpoint, hint, checksums, commits. Disagreement is damage.

What a checksum says counts only when it was made for its version; what `_last_checkpoint` says, only for the checkpoint that it names.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tahoe.exceptions import CorruptTable, NotFound
from tahoe.log.checkpoints.checkpoint_reader import CheckpointReader
from tahoe.log.checkpoints.parquet_source import DamagedCheckpoint
from tahoe.log.checksum import VersionChecksum
from tahoe.log.files.commits import read_commit
from tahoe.log.files.last_checkpoint import LastCheckpoint
from tahoe.log.files.live_files import file_keys
from tahoe.log.files.paths import checksum_name
from tahoe.log.segment import LogSegment
from tahoe.log.tail import Tail
from tahoe.protocol.actions import Action, CommitInfo, Metadata, Protocol
from tahoe.protocol.table_state import TableState
from tahoe.store.log_store import LogStore

__all__ = [
    "DoubtedCompactions",
    "check_adds_of_checkpoint",
    "check_checkpoint",
    "check_files",
    "check_state",
    "newest",
    "no_state",
]

logger = logging.getLogger(__name__)

T = TypeVar("T")


class DoubtedCompactions(Exception):
    """The checksum contradicts a log that was read from compactions."""


def check_checkpoint(store: LogStore, reader: CheckpointReader, hint: LastCheckpoint | None, tail: Tail) -> None:
    """A checkpoint can be whole Parquet and yet hold too little: by its footers, before any file is read.

    Raises:
        DamagedCheckpoint: it lacks what others say that it has.
        CorruptTable: ``DELTA_STATE_RECOVER_ERROR`` where its writer left out protocol or metadata.
    """
    checkpoint = reader.checkpoint
    missing = [name for name, kind in _REQUIRED.items() if newest(reader.single_actions, kind) is None]
    if missing and (hint is None or hint.size - reader.num_actions == len(missing)):
        # It was not cut: a writer left them out. What else such a writer got wrong is not known, so nothing takes its place.
        raise no_state(store, checkpoint.version, " and a ".join(missing), f"the checkpoint {checkpoint.names[0]} holds none")
    what = f"it holds no {' and no '.join(missing)} action" if missing else None
    checksum = tail.checkpoint_checksum
    if hint is not None and hint.num_of_add_files not in (None, reader.num_adds):
        what = f"it holds {reader.num_adds} live files, but _last_checkpoint says {hint.num_of_add_files}"
    elif hint is not None and reader.num_actions < hint.size:
        what = f"it holds {reader.num_actions} actions, but _last_checkpoint says {hint.size}"
    elif checksum is not None and checksum.num_files != reader.num_adds and _is_of(store, checksum, checkpoint.version):
        what = f"it holds {reader.num_adds} live files, but {checksum_name(checkpoint.version)} says {checksum.num_files}"
    if what is not None:
        raise DamagedCheckpoint(store.url, checkpoint, checkpoint.names[0], what)


def check_adds_of_checkpoint(
    store: LogStore, reader: CheckpointReader, hint: LastCheckpoint | None, tail: Tail, adds: pa.Table
) -> None:
    """What only the files themselves tell, when all of them are read: their sizes, and that each is there once.

    Args:
        adds: all of the checkpoint, with the columns ``path``, ``size``, ``deletionVector``.
    """
    checkpoint, checksum = reader.checkpoint, tail.checkpoint_checksum
    what = None
    size = pc.sum(adds.column("size"), min_count=0).as_py()
    if checksum is not None and checksum.table_size_bytes != size and _is_of(store, checksum, checkpoint.version):
        what = f"its files have {size} bytes, but {checksum_name(checkpoint.version)} says {checksum.table_size_bytes}"
    elif checksum is None and (hint is None or hint.num_of_add_files is None):
        # Nobody has said how many files there must be, so one that is there twice would be read twice.
        keys = pa.chunked_array([file_keys(batch, store.url) for batch in adds.to_batches()], pa.string())
        twice = adds.num_rows - pc.count_distinct(keys).as_py()
        what = f"it holds {twice} files more than once" if twice else None
    if what is not None:
        raise DamagedCheckpoint(store.url, checkpoint, checkpoint.names[0], what)


def check_state(store: LogStore, segment: LogSegment, state: TableState, checksum: VersionChecksum | None) -> None:
    """Protocol, metadata, transactions and domains against the version's checksum."""
    what = None if checksum is None else _state_mismatch(state, checksum)
    if checksum is not None and what is not None:
        _report(store, segment, checksum, what)


def check_files(store: LogStore, segment: LogSegment, files: pa.Table, checksum: VersionChecksum | None) -> None:
    """The live files against the version's checksum."""
    if checksum is None:
        return
    size = pc.sum(files.column("size"), min_count=0).as_py()
    if (checksum.num_files, checksum.table_size_bytes) != (files.num_rows, size):
        found, stated = f"{files.num_rows} live files of {size} bytes", f"{checksum.num_files} of {checksum.table_size_bytes}"
        _report(store, segment, checksum, f"{found}, but {checksum_name(segment.version)} says {stated}")


def no_state(store: LogStore, version: int, missing: str, why: str) -> CorruptTable:
    """The error of a log that gives no protocol or no metadata."""
    return CorruptTable(
        f"Table {store.url}: the state of version {version} cannot be recovered, for it needs a {missing} action and {why}. "
        "Restore the commit or checkpoint that lacks it from a backup.",
        code="DELTA_STATE_RECOVER_ERROR",
        table=store.url,
        version=version,
        action=missing,
    )


def newest(actions: Sequence[Action], kind: type[T]) -> T | None:
    """The last action of a kind."""
    return next((action for action in reversed(actions) if isinstance(action, kind)), None)


_REQUIRED: dict[str, type] = {"protocol": Protocol, "metaData": Metadata}


def _state_mismatch(state: TableState, checksum: VersionChecksum) -> str | None:
    """What the checksum says that the log does not. (A transaction that only the log has may have expired for its writer.)"""
    if checksum.protocol != state.protocol:
        return "another protocol than its checksum"
    mine, stated = state.metadata, checksum.metadata
    if (mine.id, mine.schema_string, mine.partition_columns, mine.configuration) != (
        stated.id,
        stated.schema_string,
        stated.partition_columns,
        stated.configuration,
    ):
        return "another metaData than its checksum"
    for transaction in checksum.transactions or ():
        found = state.transactions.get(transaction.app_id)
        if found is None or found.version != transaction.version:
            return f"for the application '{transaction.app_id}' another transaction than its checksum"
    if checksum.domains is not None and {each.domain: each.configuration for each in checksum.domains if not each.removed} != {
        each.domain: each.configuration for each in state.domains.values()
    }:
        return "other metadata domains than its checksum"
    return None


def _report(store: LogStore, segment: LogSegment, checksum: VersionChecksum, what: str) -> None:
    """Raise what a trustworthy checksum does not agree with; compactions are doubted first, then the checkpoint."""
    if not _is_of(store, checksum, segment.version):
        return
    if segment.compactions:
        raise DoubtedCompactions(what)
    name = checksum_name(segment.version)
    begin = f"Table {store.url}: the log gives at version {segment.version} {what}."
    if segment.checkpoint is not None:
        file = segment.checkpoint.names[0]
        message = (
            f"{begin} The checkpoint {file} is short, a commit after it has lost lines, or the checksum {name} is wrong: "
            "restore the damaged one from a backup, or delete the checksum if another reader confirms the log."
        )
        raise DamagedCheckpoint(store.url, segment.checkpoint, file, what, message)
    raise CorruptTable(
        f"{begin} A commit has lost lines, or the checksum {name} is wrong: restore the damaged commit from a backup, "
        "or delete the checksum if another reader confirms the log.",
        code="DELTA_TXN_LOG_FAILED_INTEGRITY",
        table=store.url,
        version=segment.version,
        file=name,
    )


def _is_of(store: LogStore, checksum: VersionChecksum, version: int) -> bool:
    """Whether the checksum was made for this version, as far as the ids of transactions tell."""
    if checksum.transaction_id is None:
        return True
    try:
        actions = read_commit(store, version)
    except (NotFound, CorruptTable):
        return True
    stated = next((action.transaction_id for action in actions if isinstance(action, CommitInfo)), None)
    if stated is None or stated == checksum.transaction_id:
        return True
    logger.warning("%s/%s is of another transaction than its commit and was not used", store.url, checksum_name(version))
    return False
