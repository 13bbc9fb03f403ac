"""Reads and reconciles the commits after the checkpoint (PROTOCOL.md, "Action Reconciliation")."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.base.lazy import pc
from tahoe.log.checksum import VersionChecksum, parse_checksum
from tahoe.log.commit_identity import CommitIdentity, check_identities, identity_of
from tahoe.log.files.commits import check_seal, duplicate, parse_actions, parse_commit
from tahoe.log.files.json_columns import ActionColumns, read_columns
from tahoe.log.files.live_files import (
    FILES_SCHEMA,
    TOMBSTONES_SCHEMA,
    file_keys,
    files_table,
    key_of,
    tombstones_table,
    without_rows,
)
from tahoe.log.segment import LogSegment, TailFile, not_to_be_joined
from tahoe.log.totals import FileTotals
from tahoe.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from tahoe.schema.arrow_values import array, combined, empty_table, scalar
from tahoe.store.log_store import Entry, LogStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tail:
    """The reconciled actions of some commits: the newest action for each file, application and domain.

    Args:
        adds: files that are live at the end (`FILES_SCHEMA`), oldest first.
        removes: files that are removed at the end (`TOMBSTONES_SCHEMA`).
        keys: the keys of both (`tahoe.log.files.live_files.file_keys`), which override the same keys in earlier files of the log.
        net: the change of the live files' totals, if the commits remove only existing files and add only new ones; None if a removed
            file lacks its size. A mismatch with a checksum requires a closer check, but is no proof.
        net_files: the change of their number alone.
        identities: of its commits without an embedded checksum, oldest first.
        transactions: by application.
        domains: by name, removed ones included.
        commit_info: of the newest commit; None if it has none or was read from a compaction.
        checksum, checkpoint_checksum: of the segment's version and of its checkpoint's; None if it is missing or corrupt.
    """

    adds: pa.Table
    removes: pa.Table
    keys: pa.Array
    net_files: int = 0
    net: FileTotals | None = None
    identities: tuple[CommitIdentity, ...] = ()
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: Mapping[str, SetTransaction] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    commit_info: CommitInfo | None = None
    checksum: VersionChecksum | None = None
    checkpoint_checksum: VersionChecksum | None = None


def read_tail(store: LogStore, segment: LogSegment) -> Tail:
    """Read and reconcile the segment's commits; a compaction may replace a corrupt commit, with a warning.

    Raises:
        CorruptTable: a corrupt commit that no compaction contains; the message names it.
        NotFound: a commit was removed while the log was read.
    """
    damaged: dict[str, CorruptTable] = {}
    files = segment.tail()
    while files is not None:
        try:
            tail = _read_files(store, segment, files)
        except CorruptTable as error:
            name = error.facts.get("file")
            if not any(file.entry.name == name for file in files):
                raise
            damaged[str(name)] = error
            files = segment.tail(damaged)
        else:
            for fault in damaged.values():
                logger.warning("%s It is read from a compaction instead.", fault.message)
            return tail
    raise next(iter(damaged.values()), None) or not_to_be_joined(store, segment)


def _read_files(store: LogStore, segment: LogSegment, files: Sequence[TailFile]) -> Tail:
    bodies, checksums = _read(store, files, [each for each in (segment.checksum, segment.checkpoint_checksum) if each])
    tail = _reconcile(store, files, bodies)
    identities = [identity_of(file.first, body) for file, body in zip(files, bodies, strict=True) if file.first == file.last]
    unverified = tuple(identity for identity in identities if identity is not None)
    check_identities(unverified, store.url)
    checksum, older = (checksums.get(each.name) if each else None for each in (segment.checksum, segment.checkpoint_checksum))
    return replace(tail, identities=unverified, checksum=checksum, checkpoint_checksum=older)


# Below this the exact reader is as fast, because Arrow's has a fixed cost.
_BYTES_WORTH_COLUMNS = 256 << 10


def _read(
    store: LogStore, files: Sequence[TailFile], checksums: Sequence[Entry]
) -> tuple[list[bytes], Mapping[str, VersionChecksum]]:
    """Read the bodies of the files and the intact checksums, all in one batch of requests to save waiting."""
    names = [file.entry.name for file in files]
    try:
        bodies = store.get_many([*names, *(entry.name for entry in checksums)])
    except NotFound:
        # A missing checksum is allowed; a missing commit is not.
        return _read_commits(store, names), {}
    read_checksums = {}
    for entry, body in zip(checksums, bodies[len(names) :], strict=True):
        try:
            read_checksums[entry.name] = parse_checksum(entry.name, body, store.url)
        except CorruptTable as error:
            logger.warning("%s", error.message)
    return bodies[: len(names)], read_checksums


def _read_commits(store: LogStore, names: list[str]) -> list[bytes]:
    try:
        return store.get_many(names)
    except NotFound as error:
        raise NotFound(
            f"Table {store.url}: a commit vanished while the log was read ({error.message}). The log was cleaned or the table "
            "was replaced in the meantime: read the table again.",
            code="DELTA_LOG_FILE_NOT_FOUND",
            table=store.url,
        ) from error


def _reconcile(store: LogStore, files: Sequence[TailFile], bodies: Sequence[bytes]) -> Tail:
    if sum(map(len, bodies)) >= _BYTES_WORTH_COLUMNS:
        for file, body in zip(files, bodies, strict=True):
            check_seal(file.entry.name, body, store.url)
        columns = read_columns([file.entry.name for file in files], bodies, store.url)
        if columns is not None:
            tail = _newest_of_columns(columns, _commit_info(store, files[-1], bodies[-1]), store.url)
            if tail is not None:
                return tail
    return _newest_of_actions(store, files, bodies)


def _newest_of_columns(columns: ActionColumns, commit_info: CommitInfo | None, url: str) -> Tail | None:
    """Reconcile the actions of files by column; None if one commit has two actions for the same file."""
    adds = _keyed(columns.adds, columns.add_rows, columns.add_files, url)
    removes = _keyed(columns.removes, columns.remove_rows, columns.remove_files, url)
    lines = _lines_of_keys(pa.concat_tables([adds, removes]))
    if lines is None:
        return None
    single = _newest_single(columns.others)
    live = _newest_rows(columns.adds, columns.add_rows, lines.last)
    gone = _newest_rows(columns.removes, columns.remove_rows, lines.first)
    return Tail(
        adds=live,
        removes=_newest_rows(columns.removes, columns.remove_rows, lines.last),
        keys=lines.keys,
        net_files=live.num_rows - gone.num_rows,
        net=_net(live, gone),
        protocol=single.protocol,
        metadata=single.metadata,
        transactions=single.transactions,
        domains=single.domains,
        commit_info=commit_info,
    )


@dataclass(frozen=True, slots=True)
class _LinesOfKeys:
    """The distinct keys of files, each with the first and the last line that has it."""

    keys: pa.Array
    first: pa.Array
    last: pa.Array


def _lines_of_keys(keyed: pa.Table) -> _LinesOfKeys | None:
    """Return the lines of each key; None if two lines of one commit have the same key.

    `Table.group_by` would be slower: Arrow's query engine takes longer to load, because it looks for pandas, and longer than one sort.
    """
    encoded = combined(keyed.column("key")).dictionary_encode()
    rows, commits = combined(keyed.column("row")), combined(keyed.column("file"))
    keys, codes = encoded.dictionary, encoded.indices.cast(pa.int64())
    if len(keys) == len(rows):
        return _LinesOfKeys(keys, rows, rows)
    after_last = scalar(pc.max(rows).as_py() + 1)
    order = pc.array_sort_indices(pc.add(pc.multiply(codes, after_last), rows.cast(pa.int64())))
    codes, rows, commits = codes.take(order), rows.take(order), commits.take(order)
    same_key = _equals_next(codes)
    if pc.any(pc.and_(same_key, _equals_next(commits))).as_py():
        return None
    other_key, end = pc.invert(same_key), array([True], pa.bool_())
    return _LinesOfKeys(keys, rows.filter(pa.concat_arrays([end, other_key])), rows.filter(pa.concat_arrays([other_key, end])))


def _equals_next(values: pa.Array) -> pa.Array:
    return pc.equal(values.slice(1), values.slice(0, len(values) - 1))


def _net(came: pa.Table, went: pa.Table) -> FileTotals | None:
    if went.column("size").null_count:
        return None
    more, less = FileTotals.of(came, histograms=False), FileTotals.of(went, histograms=False)
    return FileTotals(
        more.num_files - less.num_files,
        more.size_bytes - less.size_bytes,
        (more.num_deleted_records or 0) - (less.num_deleted_records or 0),
        (more.num_deletion_vectors or 0) - (less.num_deletion_vectors or 0),
    )


def _newest_rows(files: pa.Table, rows: pa.Array, newest: pa.Array) -> pa.Table:
    return without_rows(files, pc.invert(pc.is_in(rows, value_set=newest)))


def _keyed(files: pa.Table, rows: pa.Array, commits: pa.Array, url: str) -> pa.Table:
    keys = [file_keys(batch, url) for batch in files.to_batches()]
    return pa.table({"key": pa.chunked_array(keys, pa.string()), "row": rows, "file": commits})


def _commit_info(store: LogStore, file: TailFile, body: bytes) -> CommitInfo | None:
    if b'"commitInfo"' not in body:
        return None
    return next((a for _, a in parse_actions(file.entry.name, body, store.url) if isinstance(a, CommitInfo)), None)


@dataclass(slots=True)
class _Single:
    """The newest of the actions that are not files."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)

    def add(self, action: Action) -> None:
        match action:
            case Protocol():
                self.protocol = action
            case Metadata():
                self.metadata = action
            case SetTransaction():
                self.transactions[action.app_id] = action
            case DomainMetadata():
                self.domains[action.domain] = action


def _newest_single(actions: Sequence[Action]) -> _Single:
    newest = _Single()
    for action in actions:
        newest.add(action)
    return newest


def _newest_of_actions(store: LogStore, files: Sequence[TailFile], bodies: Sequence[bytes]) -> Tail:
    first: dict[str, AddFile | RemoveFile] = {}
    last: dict[str, AddFile | RemoveFile] = {}
    single = _Single()
    commit_info: CommitInfo | None = None
    for file, body in zip(files, bodies, strict=True):
        commit_info = None
        in_this_file: set[str] = set()
        for action in parse_commit(file.entry.name, body, store.url):
            if isinstance(action, AddFile | RemoveFile):
                key = key_of(action, store.url)
                if key in in_this_file:  # spelt in two ways; `parse_commit` has found those spelt alike
                    raise duplicate(file.entry.name, store.url, "file", action.path)
                in_this_file.add(key)
                first.setdefault(key, action)
                last.pop(key, None)
                last[key] = action
            elif isinstance(action, CommitInfo):
                commit_info = commit_info or action
            else:
                single.add(action)
    adds = [action for action in last.values() if isinstance(action, AddFile)]
    removes = [action for action in last.values() if isinstance(action, RemoveFile)]
    gone = [action for action in first.values() if isinstance(action, RemoveFile)]
    return Tail(
        adds=files_table(adds) if adds else empty_table(FILES_SCHEMA),
        removes=tombstones_table(removes) if removes else empty_table(TOMBSTONES_SCHEMA),
        keys=array(list(last), pa.string()),
        net_files=len(adds) - len(gone),
        net=FileTotals(0, 0, 0, 0).after(adds, gone),
        protocol=single.protocol,
        metadata=single.metadata,
        transactions=single.transactions,
        domains=single.domains,
        commit_info=commit_info,
    )
