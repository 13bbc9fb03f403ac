"""Reads the state of the table from the files of a `LogSegment`: protocol, metadata and so on, live files, tombstones.

Files are processed as columns. The tail (`tahoe.log.tail`) has the changes since the checkpoint: its files are masked out of the
checkpoint's columns, and its own live files follow. If a checkpoint is corrupt, an older one or the commits replace it, with a warning;
if neither is complete, the corruption is the error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, NotFound, Unsupported
from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import Predicate
from tahoe.log.checkpoints.checkpoint_reader import STORED_COLUMNS, THREADS, CheckpointReader, open_checkpoint
from tahoe.log.checkpoints.parquet_source import DamagedCheckpoint
from tahoe.log.consistency import (
    check_adds_of_checkpoint,
    check_checkpoint,
    check_files,
    check_state,
    may_contradict,
    newest,
    no_state,
)
from tahoe.log.files.columns import concat, with_fewer_chunks
from tahoe.log.files.live_files import (
    FILES_SCHEMA,
    TOMBSTONES_SCHEMA,
    add_files,
    each_add_file,
    file_keys,
    files_table,
    key_of,
    without_rows,
)
from tahoe.log.files.paths import commit_name
from tahoe.log.files.removed_files import AddedFiles, RemovedFiles, parts_of
from tahoe.log.matching_files import ScanPlan, plan_scan, scan_checkpoint
from tahoe.log.origin import located_in_log
from tahoe.log.partition_keys import check_keys, check_keys_for
from tahoe.log.path_spellings import ContradictoryCheckpoint, contradiction, removed_too
from tahoe.log.segment import LogSegment, segment_for
from tahoe.log.tail import Tail, read_tail
from tahoe.protocol.actions import Action, AddFile, DomainMetadata, Metadata, Protocol, RemoveFile, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.protocol.protocols import check_coordinated
from tahoe.protocol.skipping import keep
from tahoe.protocol.table_state import TableState, advance_state
from tahoe.schema.arrow_values import array
from tahoe.schema.types import StructType
from tahoe.store.log_store import LogStore
from tahoe.store.side_by_side import both

__all__ = [
    "FILES_SCHEMA",
    "TOMBSTONES_SCHEMA",
    "LogReader",
    "TableState",
    "add_files",
    "advance_files",
    "advance_state",
    "files_table",
]

logger = logging.getLogger(__name__)

T = TypeVar("T")


class LogReader:
    """Reads one version from the log. Each of the segment's files is read on first use, and the result is cached."""

    def __init__(self, store: LogStore, segment: LogSegment) -> None:
        self._store = store
        self._version = segment.version
        # That of another segment if this segment's checkpoint is corrupt.
        self._files_read = _SegmentReader(store, segment)

    def state(self) -> TableState:
        """Return protocol, metadata, transactions and domains; reads the tail, and only their row groups of the checkpoint.

        Raises:
            CorruptTable: ``DELTA_STATE_RECOVER_ERROR`` if the log has no protocol or no metadata; a corrupt file; or metadata that
                contradicts itself.
            Unsupported: the table needs reader features that this version of Tahoe lacks.
        """
        return self._answer(_SegmentReader.state)

    def files(self) -> pa.Table:
        """Return the live files: `FILES_SCHEMA`, with ``stats_parsed`` and ``partitionValues_parsed`` if the checkpoint has them.

        They are checked against the version's ``.crc``, if there is one.
        """
        return self._answer(_SegmentReader.files)

    def stored_files(self) -> pa.Table:
        """Return the live files with `STORED_COLUMNS` only. The checks are those of `files`."""
        return self._answer(lambda segment: segment.files(STORED_COLUMNS))

    def files_with_texts(self) -> pa.Table:
        """Return the live files with statistics as text, and as structs only if files lack the text. The checks are those of `files`."""
        return self._answer(lambda segment: segment.files(FILES_SCHEMA.names))

    def tombstones(self) -> pa.Table:
        """Return the tombstones in the log: `TOMBSTONES_SCHEMA`."""
        return self._answer(_SegmentReader.tombstones)

    def scan(
        self,
        predicate: Predicate,
        schema: StructType,
        partition_columns: Sequence[str],
        *,
        files: pa.Table | None = None,
    ) -> pa.Table:
        """Return the live files that may contain rows for which `predicate` is true: exact for partition values, conservative for statistics.

        Args:
            schema: the table's logical schema, with the physical names of mapped columns.
            partition_columns: logical names.
            files: the live files, if they are in memory already; else the predicate is pushed into the read of the checkpoint.
        """
        if files is not None:
            return files.filter(keep(predicate, files, schema, partition_columns))
        plan = plan_scan(predicate, schema, partition_columns)
        return self._answer(lambda segment: segment.scan(plan))

    def _answer(self, read: Callable[[_SegmentReader], T]) -> T:
        """Call `read` with the segment; if its checkpoint is corrupt, with a segment that replaces it."""
        store, current = self._store, self._files_read
        damaged: set[str] = set()
        first: DamagedCheckpoint | None = None
        undecided: LogSegment | None = None
        while True:
            try:
                answer = read(current)
            except DamagedCheckpoint as error:
                first = first or error
                damaged.update(error.names)
                if isinstance(error, ContradictoryCheckpoint):
                    undecided = undecided or current.segment
                try:
                    segment = segment_for(store, self._version, without=damaged)
                except (NotFound, CorruptTable):
                    if undecided is not None:
                        logger.warning("%s The log has no commits that decide it, so that the removal counts.", error.message)
                        current, undecided = _SegmentReader(store, undecided, trusts_tombstones=True), None
                        continue
                    if isinstance(first.__cause__, Unsupported):
                        raise first.__cause__ from error  # a checkpoint of an unsupported table is not corrupt
                    raise first from error
                logger.warning("%s It is read from %s instead.", error.message, _origin(segment))
            except (CorruptTable, Unsupported) as error:
                raise located_in_log(error, store, current.segment) from error.__cause__
            else:
                self._files_read = current
                return answer
            current = _SegmentReader(store, segment)


class _SegmentReader:
    """The files of one segment, with the cached results of reading them."""

    def __init__(self, store: LogStore, segment: LogSegment, *, trusts_tombstones: bool = False) -> None:
        self.store = store
        self.segment = segment
        self._trusts_tombstones = trusts_tombstones
        self._tail: Tail | None = None
        self._checkpoint: CheckpointReader | None = None

    @property
    def tail(self) -> Tail:
        """The segment's tail, read once."""
        if self._tail is None:
            self._tail = read_tail(self.store, self.segment)
        return self._tail

    @property
    def checkpoint(self) -> CheckpointReader | None:
        """Open the segment's checkpoint, and check it against its hint and checksum once."""
        checkpoint, hint = self.segment.checkpoint, self.segment.hint
        if self._checkpoint is None and checkpoint is not None:
            tail, reader = both(self.store, lambda: self.tail, lambda: open_checkpoint(self.store, checkpoint, hint))
            check_checkpoint(self.store, reader, hint, tail)
            self._checkpoint = reader
        return self._checkpoint

    def state(self) -> TableState:
        """See `LogReader.state`."""
        store, segment, checkpoint, tail = self.store, self.segment, self.checkpoint, self.tail
        older: Sequence[Action] = () if checkpoint is None else checkpoint.single_actions
        protocol = tail.protocol or newest(older, Protocol)
        metadata = tail.metadata or newest(older, Metadata)
        if protocol is None or metadata is None:
            missing = "protocol" if protocol is None else "metaData"
            first = commit_name(0) if segment.checkpoint is None else segment.checkpoint.names[0]
            raise no_state(store, segment.version, missing, f"the log from {first} up to that version has none")
        transactions = {a.app_id: a for a in older if isinstance(a, SetTransaction)} | dict(tail.transactions)
        domains = {a.domain: a for a in older if isinstance(a, DomainMetadata)} | dict(tail.domains)
        info = tail.commit_info
        state = TableState(
            protocol,
            metadata,
            transactions,
            {name: domain for name, domain in domains.items() if not domain.removed},
            info.in_commit_timestamp if info else None,
            info.transaction_id if info else None,
        )
        check_state(store, segment, state, tail)
        self._check_readable(state)
        return state

    def _check_readable(self, state: TableState) -> None:
        """Raise if the state cannot be read; if only a checkpoint causes the error, the commits before it are tried first."""
        check_coordinated(state.protocol, self.store)
        try:
            TableConfig(state.protocol, state.metadata, self.store.url).ensure_readable()
        except (CorruptTable, Unsupported) as error:
            checkpoint = self.segment.checkpoint
            if checkpoint is None or self.tail.metadata is not None or error.facts.get("action") != "metaData":
                raise
            raise DamagedCheckpoint(
                self.store.url, checkpoint, checkpoint.names[0], error.message, code=error.code
            ) from located_in_log(error, self.store, self.segment)

    def files(self, columns: Sequence[str] | None = None) -> pa.Table:
        """See `LogReader.files`, `LogReader.stored_files` and `LogReader.files_with_texts`."""
        store, segment, tail, checkpoint = self.store, self.segment, self.tail, self.checkpoint
        lists_files = tail.checksum is not None and tail.checksum.all_files is not None
        if columns is not None and (checkpoint is None or lists_files):
            return selected(self.files(), columns)
        added = tail.adds if columns is None else tail.adds.select(list(columns))
        metadata = tail.metadata or newest(() if checkpoint is None else checkpoint.single_actions, Metadata)
        check_keys_for(store.url, tail.adds, metadata)
        if checkpoint is None:
            check_files(store, segment, tail.adds, tail)
            return tail.adds
        all_of_checkpoint: list[pa.Table] = []

        def sift(part: pa.Table) -> pa.Table:
            all_of_checkpoint.append(part.select(["path", "size", "deletionVector"]))
            return _without(part, tail.keys, store.url)

        live = checkpoint.adds(sift, columns)
        check_keys_for(store.url, live, metadata, checkpoint.checkpoint)
        whole = concat(all_of_checkpoint, FILES_SCHEMA)
        check_adds_of_checkpoint(store, checkpoint, segment.hint, tail, whole)
        live = self._without_removed(live, checkpoint)
        files = concat([live, added], FILES_SCHEMA) if len(added) else live
        check_files(store, segment, files, tail)
        return files

    def scan(self, plan: ScanPlan) -> pa.Table:
        """See `LogReader.scan`."""
        store, segment, tail, checkpoint = self.store, self.segment, self.tail, self.checkpoint
        check_keys(store.url, tail.adds, plan.files.schema, plan.files.partition_columns)
        added = tail.adds.filter(plan.files.keep(tail.adds))
        if checkpoint is None:
            check_files(store, segment, tail.adds, tail)
            return added
        if may_contradict(tail, checkpoint.num_adds):
            # That is only a guess: the files themselves decide.
            self.files()
        matching = _without(scan_checkpoint(checkpoint, plan, THREADS), tail.keys, store.url)
        matching = self._without_removed(matching, checkpoint)
        check_keys(store.url, matching, plan.files.schema, plan.files.partition_columns, checkpoint.checkpoint)
        return concat([matching, added], FILES_SCHEMA) if len(added) else matching

    def _without_removed(self, files: pa.Table, checkpoint: CheckpointReader) -> pa.Table:
        """Return the files of the checkpoint; raise if it has tombstones of some of them, or leave those out if tombstones are trusted."""
        removed = removed_too(files, checkpoint)
        if len(removed) and not self._trusts_tombstones:
            raise contradiction(checkpoint, removed[0].as_py().partition("\0")[0])
        return _without(files, removed, self.store.url)

    def tombstones(self) -> pa.Table:
        """See `LogReader.tombstones`."""
        store, tail, checkpoint = self.store, self.tail, self.checkpoint
        parts = [] if checkpoint is None else [_without(checkpoint.removes(), tail.keys, store.url)]
        return concat([*parts, tail.removes], TOMBSTONES_SCHEMA)


def selected(files: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return these columns of live files; with ``stats``, ``stats_parsed`` too if files lack the text."""
    is_needed = "stats" in columns and "stats_parsed" in files.column_names and files["stats"].null_count
    return files.select([*columns, "stats_parsed"] if is_needed else list(columns))


def advance_files(files: pa.Table, actions: Sequence[Action], root_url: str = "") -> pa.Table:
    """Apply the actions of further commits, oldest first, to the live files; nothing is read.

    Args:
        files: the live files before (`LogReader.files`).
        root_url: the table's URL; needed only if the log uses absolute paths.
    """
    for part in parts_of(actions):
        if isinstance(part, RemovedFiles):
            files = _without_files(files, part.adds.files, root_url)
        elif isinstance(part, AddedFiles):
            batches = part.files.files.to_batches(max_chunksize=_ROWS_OF_KEYS)
            rows = [files_table(map(part.change, each_add_file(pa.Table.from_batches([batch])))) for batch in batches]
            files = concat([_without_files(files, concat(rows, FILES_SCHEMA), root_url), *rows], FILES_SCHEMA)
        else:
            files = _advanced(files, part, root_url)
    return files


def _advanced(files: pa.Table, actions: Iterable[Action], root_url: str) -> pa.Table:
    last: dict[str, AddFile | RemoveFile] = {}
    for action in actions:
        if isinstance(action, AddFile | RemoveFile):
            key = key_of(action, root_url)
            last.pop(key, None)
            last[key] = action
    if not last:
        return files
    remaining = _without(files, array(list(last), pa.string()), root_url)
    adds = [action for action in last.values() if isinstance(action, AddFile)]
    return with_fewer_chunks(concat([remaining, files_table(adds)], FILES_SCHEMA) if adds else remaining)


def _without_files(files: pa.Table, others: pa.Table, root_url: str) -> pa.Table:
    """Return the rows that are none of the other files."""
    batches = others.select(["path", "deletionVector"]).to_batches(max_chunksize=_ROWS_OF_KEYS)
    return _without(files, pa.chunked_array([file_keys(batch, root_url) for batch in batches], pa.string()), root_url)


def _without(files: pa.Table, keys: pa.Array | pa.ChunkedArray, root_url: str) -> pa.Table:
    """Return the rows whose key is not among `keys`."""
    if len(keys) == 0 or files.num_rows == 0:
        return files

    def gone(batch: pa.RecordBatch) -> pa.Array:
        return pc.is_in(file_keys(batch, root_url), value_set=keys)

    names = [name for name in ("path", "deletionVector") if name in files.column_names]
    batches = files.select(names).to_batches(max_chunksize=_ROWS_OF_KEYS)
    if files.num_rows <= _ROWS_OF_KEYS:
        return without_rows(files, pa.chunked_array(map(gone, batches), pa.bool_()))
    with ThreadPoolExecutor(THREADS) as pool:
        return without_rows(files, pa.chunked_array(pool.map(gone, batches), pa.bool_()))


_ROWS_OF_KEYS = 65_536


def _origin(segment: LogSegment) -> str:
    return "the commits alone" if segment.checkpoint is None else f"the checkpoint of version {segment.checkpoint.version}"
