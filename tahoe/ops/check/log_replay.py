"""An independent replay of the log: one action after the other into a dictionary.

The columnar replay, the checkpoints and the checksums are compared with it, so it shares only the parser with them.

    commits ──fold──► live files at v ──compare──► checkpoint at v, checksum at v

Each commit is read once, at a cost proportional to its own actions, and is not kept in memory: sums are updated, not recomputed for
each checksum. A checkpoint is compared as a set of texts, one per file; those of the live files are kept up to date.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import pyarrow as pa

from tahoe.base.exceptions import NotFound, TahoeError
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress
from tahoe.log.checkpoints.checkpoint_reader import CheckpointReader, open_checkpoint
from tahoe.log.checksum import VersionChecksum, parse_checksum
from tahoe.log.commit_identity import CommitIdentityCheck, identity_of, no_in_commit_timestamp
from tahoe.log.consistency import identifies_itself, lost_its_id
from tahoe.log.files.commits import parse_commit
from tahoe.log.files.listing import Checkpoint
from tahoe.log.files.live_files import canonical_path
from tahoe.log.files.paths import checksum_name, commit_name
from tahoe.log.history import in_commit_timestamps_from, states_its_time
from tahoe.log.path_spellings import removed_too
from tahoe.ops.check.subjects.violation import Reported, Violation, violation_of
from tahoe.protocol.action_members import check_partition_values
from tahoe.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from tahoe.protocol.config import TableConfig
from tahoe.schema.arrow_values import scalar
from tahoe.schema.types import StructType
from tahoe.store.log_store import Entry, LogStore

__all__ = ["LogFiles", "LogReplay", "difference", "file_texts", "newest"]

T = TypeVar("T")

_BYTES_AT_ONCE = 32 << 20
_FILES_AT_ONCE = 256
_BETWEEN = "\0"  # in no path: `decode_path` refuses it


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The log files that the replay reads, by version."""

    commits: dict[int, Entry]
    checksums: dict[int, Entry]
    checkpoints: dict[int, list[Checkpoint]]


@dataclass(slots=True)
class _Sums:
    """The sums over the live files."""

    files: int = 0
    bytes: int = 0
    vectors: int = 0
    deleted: int = 0

    def count(self, size: int, dead: int | None, sign: int) -> None:
        self.files += sign
        self.bytes += sign * size
        if dead is not None:
            self.vectors += sign
            self.deleted += sign * dead


@dataclass
class LogReplay:
    """The live files by plain folding, from version 0 or from the oldest checkpoint.

    Args:
        live: the text of each live file (`file_texts`) by its decoded path and vector; None as long as the log does not determine them.
        change_files: the change-data files that commits name, with their versions.
    """

    store: LogStore
    live: dict[str, str] | None = None
    version: int = -1
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    change_files: list[tuple[int, AddCDCFile]] = field(default_factory=list)
    _counted: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    _sums: _Sums = field(default_factory=_Sums)
    _compared: set[Checkpoint] = field(default_factory=set)
    _transaction_ids: dict[str, int] = field(default_factory=dict)
    _applications: dict[str, int] = field(default_factory=dict)
    _domains: dict[str, str] = field(default_factory=dict)
    _from_the_start: bool = False
    _partitions: tuple[StructType, tuple[str, ...]] = (StructType(()), ())
    _last_timestamp: int | None = None
    _timed_from: int | None = None
    _stated: CommitInfo = field(default_factory=lambda: CommitInfo({}))

    def __post_init__(self) -> None:
        self._places = CommitIdentityCheck(self.store.url)

    def run(self, files: LogFiles, progress: Progress) -> Iterator[Violation]:
        """Fold the commits that are newer than those folded before."""
        versions = sorted(version for version in files.commits if version > self.version)
        if self.version < 0:
            before = versions[0] - 1 if versions else max(files.checkpoints, default=-1)
            self.version = before if before in files.checkpoints else -1
        yield from self._checkpoints(files.checkpoints.get(self.version, ()))
        done = 0
        for block in _blocks(versions, files):
            for version, data, checksum in zip(block, *self._read(block, files), strict=True):
                yield from self._step(version, data, checksum, files)
                done += 1
                progress("commits checked", done, len(versions))

    def _read(self, versions: Sequence[int], files: LogFiles) -> tuple[list[bytes | TahoeError], list[bytes | TahoeError | None]]:
        commits = _get_many(self.store, [files.commits[version].name for version in versions])
        named = [version for version in versions if version in files.checksums]
        checksums = dict(zip(named, _get_many(self.store, [checksum_name(version) for version in named]), strict=True))
        return commits, [checksums.get(version) for version in versions]

    def _step(
        self, version: int, data: bytes | TahoeError, checksum: bytes | TahoeError | None, files: LogFiles
    ) -> Iterator[Violation]:
        violations: list[Violation] = []
        actions: tuple[Action, ...] | None = None
        with Reported(violations.append, "commit", f"Commit {version}", version, commit_name(version)):
            if isinstance(data, TahoeError):
                raise data
            actions = parse_commit(commit_name(version), data, self.store.url)
        self.version = version
        if actions is None or isinstance(data, TahoeError):
            self.live = None  # until the next checkpoint
            yield from violations
            yield from self._checkpoints(files.checkpoints.get(version, ()))
            return
        told = list(self._commit_info(version, actions))
        yield from told
        yield from _begins_a_table(version, actions)
        with Reported(violations.append, "commit", f"Commit {version}", version, commit_name(version)):
            self._apply(version, actions)
        if self._timed_from is not None and version >= self._timed_from and not states_its_time(actions):
            violations.append(
                violation_of(no_in_commit_timestamp(self.store.url, version), "commit", "", version, commit_name(version))
            )
        place = identity_of(version, data)
        if place is not None and not told:
            with Reported(violations.append, "commit", f"Commit {version}", version, commit_name(version)):
                self._places.check(place)
        yield from violations
        yield from self._checkpoints(files.checkpoints.get(version, ()))
        if self.live is not None and checksum is not None:
            yield from self._checksum(version, checksum, identifies_itself(actions))

    def _apply(self, version: int, actions: tuple[Action, ...]) -> None:
        if version == 0:
            self._begin()
            self._from_the_start = True
        self._fold_single(actions)
        self._configure(actions)
        # Within one commit the order of lines has no meaning: a change of a vector is a remove and an add of one path.
        for action in actions:
            if isinstance(action, RemoveFile) and self.live is not None:
                self._drop(self._key(action))
        for action in actions:
            match action:
                case AddFile() if self.live is not None:
                    check_partition_values(action.path, action.partition_values, *self._partitions, self.store.url)
                    vector = action.deletion_vector
                    self._put(self._key(action), _text_of(action), action.size, None if vector is None else vector.cardinality)
                case AddCDCFile():
                    self.change_files.append((version, action))
                case Protocol():
                    self.protocol = action
                case Metadata():
                    self.metadata = action

    def _configure(self, actions: Sequence[Action]) -> None:
        """Take the table's schema, its partition columns and whether commits record their timestamps from a commit or a checkpoint.

        Protocol and metadata may each come alone; the other is taken from the current state.
        """
        metadata, protocol = newest(actions, Metadata), newest(actions, Protocol)
        changes = metadata is not None or protocol is not None
        metadata, protocol = metadata or self.metadata, protocol or self.protocol
        if changes and metadata is not None and protocol is not None:
            config = TableConfig(protocol, metadata, self.store.url)
            self._timed_from = in_commit_timestamps_from(config)
            self._partitions = config.schema, config.partition_columns

    def _begin(self) -> None:
        self.live, self._counted, self._sums = {}, {}, _Sums()
        self._applications, self._domains, self._from_the_start = {}, {}, False

    def _fold_single(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case SetTransaction():
                    self._applications[action.app_id] = action.version
                case DomainMetadata(removed=True):
                    self._domains.pop(action.domain, None)
                case DomainMetadata():
                    self._domains[action.domain] = action.configuration

    def _put(self, key: str, text: str, size: int, dead: int | None) -> None:
        assert self.live is not None
        self._drop(key)
        self.live[key] = text
        self._counted[key] = size, dead
        self._sums.count(size, dead, 1)

    def _drop(self, key: str) -> None:
        assert self.live is not None
        if self.live.pop(key, None) is not None:
            self._sums.count(*self._counted.pop(key), -1)

    def _key(self, action: AddFile | RemoveFile) -> str:
        vector = action.deletion_vector
        return _key(action.path, None if vector is None else vector.unique_id, self.store.url)

    def _commit_info(self, version: int, actions: tuple[Action, ...]) -> Iterator[Violation]:
        info = next((a for a in actions if isinstance(a, CommitInfo)), None)
        self._stated = info or CommitInfo({})
        if info is None:
            return
        before = self._transaction_ids.get(info.transaction_id or "")
        if info.transaction_id and before is not None:
            yield Violation("commit", f"versions {before} and {version} have the same txnId {info.transaction_id}.", version)
        if info.transaction_id:
            self._transaction_ids[info.transaction_id] = version
        timestamp, last = info.in_commit_timestamp, self._last_timestamp
        if timestamp is not None and last is not None and timestamp <= last:
            yield Violation(
                "commit", f"the in-commit timestamp {timestamp} of version {version} is not after its predecessor's.", version
            )
        self._last_timestamp = timestamp if timestamp is not None else last

    def differences(self, what: str, protocol: Protocol | None, metadata: Metadata | None) -> Iterator[str]:
        """Yield a sentence for each difference between a protocol and metadata and those of the log so far."""
        if None not in (protocol, self.protocol) and protocol != self.protocol:
            yield f"the protocol of {what} is {_shown_protocol(protocol)}, the commits give {_shown_protocol(self.protocol)}."
        if metadata is not None and self.metadata is not None:
            names = [f.name for f in fields(Metadata) if not _equal(f.name, metadata, self.metadata)]
            if names:
                yield f"the metadata of {what} is not that of the last metaData action of the commits: {', '.join(names)} differ."

    # -- checkpoints -------------------------------------------------------------------------------------------------------

    def _checkpoints(self, checkpoints: Sequence[Checkpoint]) -> Iterator[Violation]:
        for checkpoint in checkpoints:
            if checkpoint not in self._compared:
                self._compared.add(checkpoint)
                violations: list[Violation] = []
                name = checkpoint.entries[0].name
                with Reported(violations.append, "checkpoint", f"Checkpoint {name}", checkpoint.version, name):
                    violations += self._checkpoint(checkpoint)
                yield from violations

    def _checkpoint(self, checkpoint: Checkpoint) -> Iterator[Violation]:
        reader = open_checkpoint(self.store, checkpoint)
        version, name = checkpoint.version, checkpoint.entries[0].name
        said = (newest(reader.single_actions, Protocol), newest(reader.single_actions, Metadata))
        for differing in self.differences(f"the checkpoint of version {version}", *said):
            yield Violation("checkpoint", differing, version, name)
        files = reader.adds()
        reader.removes()  # read only to check that they are intact; nothing is compared with them
        files = self._without_removed(files, reader)
        texts = file_texts(files)
        if self.live is None:
            self._begin()
            self._fold_single(reader.single_actions)
            self._configure(reader.single_actions)
            self.protocol, self.metadata = said[0] or self.protocol, said[1] or self.metadata
            vectors = files["deletionVector"].to_pylist()
            sizes = files["size"].to_pylist()
            for text, size, vector in zip(texts, sizes, vectors, strict=True):
                self._put(_key_of_text(text, self.store.url), text, size or 0, None if vector is None else vector["cardinality"])
            return
        wrong = difference(f"the checkpoint of version {version}", texts, self.live, self.store.url)
        if wrong is not None:
            yield Violation("checkpoint", wrong, version, name)

    def _without_removed(self, files: pa.Table, reader: CheckpointReader) -> pa.Table:
        """Return a checkpoint's files without those that it lists as removed too, unless the commits say that they are live."""
        removed = {key if _BETWEEN in key else f"{key}{_BETWEEN}" for key in removed_too(files, reader).to_pylist()}
        gone = removed - (self.live or {}).keys()
        if not gone:
            return files
        return files.filter(pa.array([_key_of_text(text, self.store.url) not in gone for text in file_texts(files)]))

    # -- checksums ---------------------------------------------------------------------------------------------------------

    def _checksum(self, version: int, data: bytes | TahoeError, commit_vouches: bool) -> Iterator[Violation]:
        name = checksum_name(version)
        try:
            if isinstance(data, TahoeError):
                raise data
            checksum = parse_checksum(name, data, self.store.url)
        except Exception as error:  # noqa: BLE001 - any error of a corrupt checksum is the finding
            if not isinstance(error, NotFound):  # cleaned up since it was listed
                yield violation_of(error, "checksum", f"Checksum {name}", version, name)
            return
        if checksum.transaction_id is not None and not commit_vouches:
            yield Violation("commit", lost_its_id(version), version, commit_name(version))
        for member, said, given in (
            ("txnId", checksum.transaction_id, self._stated.transaction_id),
            ("inCommitTimestampOpt", checksum.in_commit_timestamp, self._stated.in_commit_timestamp),
        ):
            if None not in (said, given) and said != given:
                text = f"the checksum of version {version} says {member} {said}, its commit says {given}."
                yield Violation("checksum", text, version, name)
        if checksum.all_files is not None and self.live is not None:
            listed = [_text_of(add) for add in checksum.all_files]
            wrong = difference(f"the list of files in the checksum of version {version}", listed, self.live, self.store.url)
            if wrong is not None:
                yield Violation("checksum", wrong, version, name)
        for what in self._other_state(checksum):
            yield Violation("checksum", f"the checksum of version {version} says {what}.", version, name)
        for what, stated, counted in self._counters(checksum):
            if stated is not None and stated != counted:
                yield Violation(
                    "checksum", f"the checksum of version {version} says {stated} {what}, the log has {counted}.", version, name
                )
        for wrong in self.differences(f"the checksum of version {version}", checksum.protocol, checksum.metadata):
            yield Violation("checksum", wrong, version, name)

    def _other_state(self, checksum: VersionChecksum) -> Iterator[str]:
        """Yield the transactions and domains that differ from the replay's. (A checkpoint may have dropped old transactions.)"""
        for transaction in checksum.transactions or ():
            mine = self._applications.get(transaction.app_id)
            if mine != transaction.version and (mine is not None or self._from_the_start):
                given = "none" if mine is None else mine
                yield f"transaction {transaction.version} of the application '{transaction.app_id}', the log has {given}"
        stated = {domain.domain: domain.configuration for domain in checksum.domains or () if not domain.removed}
        for name in sorted(stated.keys() | self._domains.keys()) if checksum.domains is not None else ():
            if stated.get(name) != self._domains.get(name):
                yield f"{stated.get(name, 'nothing')} of the metadata domain '{name}', the log has {self._domains.get(name, 'nothing')}"

    def _counters(self, checksum: VersionChecksum) -> Iterator[tuple[str, Any, int]]:
        """Yield each counter's name, the checksum's value and the replay's."""
        sums = self._sums
        yield "files", checksum.num_files, sums.files
        yield "bytes", checksum.table_size_bytes, sums.bytes
        yield "deletion vectors", checksum.num_deletion_vectors, sums.vectors
        yield "deleted records", checksum.num_deleted_records, sums.deleted


def _begins_a_table(version: int, actions: Sequence[Action]) -> Iterator[Violation]:
    missing = [name for name, kind in (("protocol", Protocol), ("metaData", Metadata)) if newest(actions, kind) is None]
    if version == 0 and missing:
        yield Violation("commit", f"the commit of version 0 holds no {' and no '.join(missing)} action.", 0, commit_name(0))


def newest(actions: Sequence[Action], kind: type[T]) -> T | None:
    """Return the last action of a kind, or None."""
    return next((action for action in reversed(actions) if isinstance(action, kind)), None)


def file_texts(files: pa.Table) -> list[str]:
    """Return one text per file with the values on which two replays must agree: path, vector, size, partition values that are not null.

    The path is spelled as in the log: equal texts are equal files; `difference` compares decoded paths only if texts differ.

    Args:
        files: with columns of `tahoe.log.replay.FILES_SCHEMA`.
    """
    nothing = scalar("")
    parts = [files["path"].cast(pa.string())]
    vectors = files["deletionVector"]
    for member in ("storageType", "pathOrInlineDv", "offset"):
        parts.append(pc.coalesce(pc.struct_field(vectors, member).cast(pa.string()), nothing))
    parts.append(pc.coalesce(files["size"].cast(pa.string()), nothing))
    joined = pc.binary_join_element_wise(*parts, scalar(_BETWEEN))
    values = files["partitionValues"]
    for name in sorted(_distinct_keys(values)):
        value = pc.coalesce(pc.map_lookup(values, scalar(name, values.type.key_type), "first"), nothing)
        said = pc.binary_join_element_wise(scalar(f"{_BETWEEN}{name}"), value, scalar("="))
        joined = pc.binary_join_element_wise(joined, pc.if_else(pc.equal(value, nothing), nothing, said), nothing)
    texts: list[str] = joined.to_pylist()
    return texts


def difference(what: str, texts: Sequence[str], live: dict[str, str], root: str) -> str | None:
    """Describe how the files of another replay differ from the live ones; None if they do not.

    Args:
        texts: from `file_texts`.
    """
    if len(texts) == len(live) and set(texts) == set(live.values()):
        return None
    theirs = {_key_of_text(text, root): text for text in texts}
    twice = len(texts) - len(theirs)
    missing, extra = sorted(live.keys() - theirs.keys()), sorted(theirs.keys() - live.keys())
    other = sorted(key for key in live.keys() & theirs.keys() if _said(theirs[key]) != _said(live[key]))
    if not (twice or missing or extra or other):
        return None
    counts = ((missing, "missing"), (extra, "too many"), (other, "with another size or other partition values"))
    told = [f"{len(keys)} {how} (e.g. {keys[0].partition(_BETWEEN)[0]})" for keys, how in counts if keys]
    told += [f"{twice} twice"] if twice else []
    return f"{what} has {len(texts)} live files, the commits give {len(live)}: {', '.join(told)}."


def _said(text: str) -> list[str]:
    """The size and partition values of a text, in a fixed order."""
    _, _, _, _, size, *values = text.split(_BETWEEN)
    return [size, *sorted(value for value in values if value)]


def _text_of(add: AddFile) -> str:
    """The text of one action, as in `file_texts`."""
    vector = add.deletion_vector
    offset = "" if vector is None or vector.offset is None else str(vector.offset)
    described = ("", "", "") if vector is None else (vector.storage_type, vector.path_or_inline_dv, offset)
    values = [f"{name}={value}" for name, value in sorted(add.partition_values.items()) if value]
    return _BETWEEN.join((add.path, *described, str(add.size), *values))


def _key_of_text(text: str, root: str) -> str:
    path, kind, described, offset, *_ = text.split(_BETWEEN)
    return _key(path, None if not kind else f"{kind}{described}" + (f"@{offset}" if offset else ""), root)


def _key(path: str, vector: str | None, root: str) -> str:
    """The identity of a logical file: ``a%20b`` and ``a b`` are the same."""
    return f"{canonical_path(path, root)}{_BETWEEN}{vector or ''}"


def _distinct_keys(values: pa.ChunkedArray) -> set[str]:
    keys: set[str] = set()
    for chunk in values.chunks:
        keys.update(pc.unique(chunk.keys).to_pylist())
    return keys


def _equal(name: str, one: Metadata, other: Metadata) -> bool:
    mine, theirs = getattr(one, name), getattr(other, name)
    if mine == theirs:
        return True
    if name != "schema_string":
        return False
    try:
        return bool(json.loads(mine) == json.loads(theirs))  # schemas are compared as JSON values, regardless of whitespace
    except (ValueError, RecursionError):
        return False


def _shown_protocol(protocol: Protocol | None) -> str:
    return json.dumps(None if protocol is None else protocol.to_json_value())


def _blocks(versions: Sequence[int], files: LogFiles) -> Iterator[list[int]]:
    """Split the versions into runs that are read at once, bounded in number and bytes."""
    block: list[int] = []
    size = 0
    for version in versions:
        more = files.commits[version].size + (files.checksums[version].size if version in files.checksums else 0)
        if block and (len(block) >= _FILES_AT_ONCE or size + more > _BYTES_AT_ONCE):
            yield block
            block, size = [], 0
        block.append(version)
        size += more
    if block:
        yield block


def _get_many(store: LogStore, names: list[str]) -> list[bytes | TahoeError]:
    """Return each object, or the error of reading it."""
    try:
        return list(store.get_many(names))
    except TahoeError:
        return [_get(store, name) for name in names]


def _get(store: LogStore, name: str) -> bytes | TahoeError:
    try:
        return store.get(name)
    except TahoeError as error:
        return error
