"""An independent replay of the log: one action after the other into a dictionary.

The columnar replay, the checkpoints and the checksums are compared with it, so it shares only the parser with them.

    commits ──fold──► live files at v ──compare──► checkpoint at v, checksum at v

Each commit is read once, at a cost proportional to its own actions, and is not kept in memory: sums are updated, not recomputed for
each checksum. A checkpoint is compared as a set of texts, one per file; those of the live files are kept up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tahoe.base.exceptions import NotFound, TahoeError
from tahoe.base.lazy import pc
from tahoe.log.checkpoints.checkpoint_reader import CheckpointReader, open_checkpoint
from tahoe.log.checksum import parse_checksum
from tahoe.log.commit_identity import CommitIdentityCheck, identity_of, no_in_commit_timestamp
from tahoe.log.commit_times import in_commit_timestamps_from, states_its_time
from tahoe.log.consistency import identifies_itself, lost_its_id, newest
from tahoe.log.files.commits import parse_commit
from tahoe.log.files.listing import Checkpoint
from tahoe.log.files.live_files import canonical_path
from tahoe.log.files.paths import checksum_name, commit_name
from tahoe.log.path_spellings import removed_too
from tahoe.ops.check.rules import checksum_rules
from tahoe.ops.check.rules.checksum_rules import ChecksumFile
from tahoe.ops.check.rules.commit_rules import FORMAT_RULES
from tahoe.ops.check.subjects.raw_log import RawLog, VersionFiles
from tahoe.ops.check.subjects.replayed_log import LogState, Totals
from tahoe.ops.check.subjects.rule import Level
from tahoe.ops.check.subjects.table_settings import Settings
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
from tahoe.store.log_store import LogStore

_SINGLE: dict[type[Action], str] = {
    Protocol: "protocol",
    Metadata: "metaData",
    SetTransaction: "txn",
    DomainMetadata: "domainMetadata",
}
# In texts of files, a path or value that contains one of these three characters is escaped, so that it cannot imitate another file's text.
_BETWEEN, _EQUALS, _ESCAPE = "\0", "\1", "\2"
_RESERVED = re.compile(r"[\x00-\x02]")


@dataclass
class LogReplay:
    """The live files by plain folding, from version 0 or from the oldest checkpoint.

    Args:
        live: the text of each live file (`file_texts`) by its decoded path and vector; None as long as the log does not determine them.
        change_files: the change-data files that commits name, with their versions.
    """

    store: LogStore
    live: dict[str, str] | None = None
    state: LogState = field(init=False)
    change_files: list[tuple[int, AddCDCFile]] = field(default_factory=list)
    _counted: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    _compared: set[Checkpoint] = field(default_factory=set)
    _transaction_ids: dict[str, int] = field(default_factory=dict)
    _protocol: Protocol | None = None
    _metadata: Metadata | None = None
    _partitions: tuple[StructType, tuple[str, ...]] = (StructType(()), ())
    _timed_from: int | None = None
    _info: CommitInfo = field(default_factory=lambda: CommitInfo({}))

    def __post_init__(self) -> None:
        self.state = LogState(self.store.url)
        self._identities = CommitIdentityCheck(self.store.url)

    @property
    def version(self) -> int:
        """The last version folded; -1 if none was."""
        return self.state.version

    def begin(self, log: RawLog) -> Iterator[Violation]:
        """Start from the oldest checkpoint if the first commits are missing, unless commits were folded before."""
        if self.version < 0:
            before = min(log.commits) - 1 if log.commits else max(log.checkpoints, default=-1)
            self.state.version = before if before in log.checkpoints else -1
        yield from self._checkpoints(log.checkpoints.get(self.version, ()))

    def fold(self, files: VersionFiles, checkpoints: Sequence[Checkpoint]) -> Iterator[Violation]:
        """Fold the next commit, and compare the state with the checksum and the checkpoints of its version."""
        version, data = files.version, files.commit
        violations: list[Violation] = []
        actions: tuple[Action, ...] | None = None
        with Reported(violations.append, "commit", f"Commit {version}", version, commit_name(version)):
            if isinstance(data, TahoeError):
                raise data
            actions = parse_commit(commit_name(version), data, self.store.url)
        self.state.version = version
        if actions is None or isinstance(data, TahoeError):
            self.live = None  # until the next checkpoint
            yield from violations
            yield from self._checkpoints(checkpoints)
            return
        wrong_info = list(self._commit_info(version, actions))
        yield from wrong_info
        if version == 0:
            yield from FORMAT_RULES.violations(Level.QUICK, files.lines(), version, commit_name(version))
        with Reported(violations.append, "commit", f"Commit {version}", version, commit_name(version)):
            self._apply(version, actions)
        if self._timed_from is not None and version >= self._timed_from and not states_its_time(actions):
            violations.append(
                violation_of(no_in_commit_timestamp(self.store.url, version), "commit", "", version, commit_name(version))
            )
        identity = identity_of(version, data)
        if identity is not None and not wrong_info:
            with Reported(violations.append, "commit", f"Commit {version}", version, commit_name(version)):
                self._identities.check(identity)
        yield from violations
        yield from self._checkpoints(checkpoints)
        if self.live is not None and files.checksum is not None:
            yield from self._checksum(version, files.checksum, identifies_itself(actions))

    def _apply(self, version: int, actions: tuple[Action, ...]) -> None:
        if version == 0:
            self._begin(complete=True)
        self._take_single(actions)
        # Within one commit the order of lines has no meaning: a change of a vector is a remove and an add of one path.
        for action in actions:
            if isinstance(action, RemoveFile) and self.live is not None:
                self._drop(self._key(action))
        for action in actions:
            if isinstance(action, AddFile) and self.live is not None:
                check_partition_values(action.path, action.partition_values, *self._partitions, self.store.url)
                vector = action.deletion_vector
                self._put(self._key(action), _text_of(action), action.size, None if vector is None else vector.cardinality)
            elif isinstance(action, AddCDCFile):
                self.change_files.append((version, action))

    def _begin(self, *, complete: bool) -> None:
        state = self.state
        self.live, self._counted, state.totals = {}, {}, Totals()
        state.transactions, state.domains, state.complete, state.known = {}, {}, complete, True

    def _take_single(self, actions: Sequence[Action]) -> None:
        """Fold the actions that are not of files. Protocol and metadata may each come alone; the other stays."""
        for action in actions:
            if type(action) in _SINGLE:
                self.state.take_single(_SINGLE[type(action)], action.to_json_value())
        protocol, metadata = newest(actions, Protocol), newest(actions, Metadata)
        if protocol is None and metadata is None:
            return
        self._protocol, self._metadata = protocol or self._protocol, metadata or self._metadata
        if self._protocol is not None and self._metadata is not None:
            config = TableConfig(self._protocol, self._metadata, self.store.url)
            self._timed_from = in_commit_timestamps_from(config)
            self._partitions = config.schema, config.partition_columns
            self.state.settings = Settings(self.state.protocol or {}, self.state.metadata or {})

    def _put(self, key: str, text: str, size: int, dead: int | None) -> None:
        assert self.live is not None
        self._drop(key)
        self.live[key] = text
        self._counted[key] = size, dead
        self.state.totals.count(size, dead, 1)

    def _drop(self, key: str) -> None:
        assert self.live is not None
        if self.live.pop(key, None) is not None:
            self.state.totals.count(*self._counted.pop(key), -1)

    def _key(self, action: AddFile | RemoveFile) -> str:
        vector = action.deletion_vector
        return _key(action.path, None if vector is None else vector.unique_id, self.store.url)

    def _commit_info(self, version: int, actions: tuple[Action, ...]) -> Iterator[Violation]:
        info = next((a for a in actions if isinstance(a, CommitInfo)), None)
        self._info = info or CommitInfo({})
        if info is None:
            return
        before = self._transaction_ids.get(info.transaction_id or "")
        if info.transaction_id and before is not None:
            yield Violation("commit", f"versions {before} and {version} have the same txnId {info.transaction_id}.", version)
        if info.transaction_id:
            self._transaction_ids[info.transaction_id] = version
        timestamp, last = info.in_commit_timestamp, self.state.timestamp
        if timestamp is not None and last is not None and timestamp <= last:
            yield Violation(
                "commit", f"the in-commit timestamp {timestamp} of version {version} is not after its predecessor's.", version
            )
        self.state.timestamp = timestamp if timestamp is not None else last

    def differences(self, subject: str, protocol: Protocol | None, metadata: Metadata | None) -> Iterator[str]:
        """Yield a sentence for each difference between a protocol and metadata and those of the log so far."""
        values = (None if action is None else action.to_json_value() for action in (protocol, metadata))
        return (f"{subject}: {text}." for text in self.state.differences(*values))

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
        settings = newest(reader.single_actions, Protocol), newest(reader.single_actions, Metadata)
        for text in self.differences(f"the checkpoint of version {version}", *settings):
            yield Violation("checkpoint", text, version, name)
        files = reader.adds()
        reader.removes()  # read only to check that they are intact; nothing is compared with them
        files = self._without_removed(files, reader)
        texts = file_texts(files)
        if self.live is None:
            self._begin(complete=False)
            self._take_single(reader.single_actions)
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
        if checksum.all_files is not None and self.live is not None:
            listed = [_text_of(add) for add in checksum.all_files]
            wrong = difference(f"the list of files in the checksum of version {version}", listed, self.live, self.store.url)
            if wrong is not None:
                yield Violation("checksum", wrong, version, name)
        yield from checksum_rules.RULES.violations(Level.QUICK, ChecksumFile(data, self._info.values, self.state), version, name)


def file_texts(files: pa.Table) -> list[str]:
    """Return one text per file with the values on which two replays must agree: path, vector, size, partition values that are not null.

    The path is spelled as in the log: equal texts are equal files; `difference` compares decoded paths only if texts differ.

    Args:
        files: with columns of `tahoe.log.replay.FILES_SCHEMA`.
    """
    nothing = scalar("")
    parts = [_escaped_array(files["path"].cast(pa.string()))]
    vectors = files["deletionVector"]
    for member in ("storageType", "pathOrInlineDv", "offset"):
        parts.append(_escaped_array(pc.coalesce(pc.struct_field(vectors, member).cast(pa.string()), nothing)))
    parts.append(pc.coalesce(files["size"].cast(pa.string()), nothing))
    joined = pc.binary_join_element_wise(*parts, scalar(_BETWEEN))
    values = files["partitionValues"]
    for name in sorted(_distinct_keys(values)):
        value = _escaped_array(pc.coalesce(pc.map_lookup(values, scalar(name, values.type.key_type), "first"), nothing))
        pair = pc.binary_join_element_wise(scalar(f"{_BETWEEN}{_escaped(name)}"), value, scalar(_EQUALS))
        joined = pc.binary_join_element_wise(joined, pc.if_else(pc.equal(value, nothing), nothing, pair), nothing)
    texts: list[str] = joined.to_pylist()
    return texts


def difference(subject: str, texts: Sequence[str], live: dict[str, str], root: str) -> str | None:
    """Describe how the files of another replay differ from the live ones; None if they do not.

    Args:
        texts: from `file_texts`.
    """
    if len(texts) == len(live) and set(texts) == set(live.values()):
        return None
    actual = {_key_of_text(text, root): text for text in texts}
    twice = len(texts) - len(actual)
    missing, extra = sorted(live.keys() - actual.keys()), sorted(actual.keys() - live.keys())
    other = sorted(key for key in live.keys() & actual.keys() if _size_and_values(actual[key]) != _size_and_values(live[key]))
    if not (twice or missing or extra or other):
        return None
    counts = ((missing, "missing"), (extra, "too many"), (other, "with another size or other partition values"))
    parts = [f"{len(keys)} {how} (e.g. {keys[0].partition(_BETWEEN)[0]})" for keys, how in counts if keys]
    parts += [f"{twice} twice"] if twice else []
    return f"{subject} has {len(texts)} live files, the commits give {len(live)}: {', '.join(parts)}."


def _size_and_values(text: str) -> list[str]:
    """The size and partition values of a text, in a fixed order."""
    _, _, _, _, size, *values = text.split(_BETWEEN)
    return [size, *sorted(value for value in values if value)]


def _text_of(add: AddFile) -> str:
    """The text of one action, as in `file_texts`."""
    vector = add.deletion_vector
    offset = "" if vector is None or vector.offset is None else str(vector.offset)
    described = ("", "", "") if vector is None else (vector.storage_type, vector.path_or_inline_dv, offset)
    values = [f"{_escaped(name)}{_EQUALS}{_escaped(value)}" for name, value in sorted(add.partition_values.items()) if value]
    return _BETWEEN.join((*map(_escaped, (add.path, *described)), str(add.size), *values))


def _escaped(text: str) -> str:
    return _RESERVED.sub(lambda character: f"{_ESCAPE}{ord(character[0])}", text)


def _escaped_array(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """`_escaped` of each text."""
    if pc.any(pc.match_substring_regex(texts, _RESERVED.pattern), min_count=0).as_py():
        for character in (_ESCAPE, _BETWEEN, _EQUALS):
            texts = pc.replace_substring(texts, character, f"{_ESCAPE}{ord(character)}")
    return texts


def _unescaped(text: str) -> str:
    return re.sub(f"{_ESCAPE}([0-2])", lambda escaped: chr(int(escaped[1])), text)


def _key_of_text(text: str, root: str) -> str:
    path, kind, described, offset, *_ = map(_unescaped, text.split(_BETWEEN))
    return _key(path, None if not kind else f"{kind}{described}" + (f"@{offset}" if offset else ""), root)


def _key(path: str, vector: str | None, root: str) -> str:
    """The identity of a logical file: ``a%20b`` and ``a b`` are the same."""
    return f"{canonical_path(path, root)}{_BETWEEN}{vector or ''}"


def _distinct_keys(values: pa.ChunkedArray) -> set[str]:
    keys: set[str] = set()
    for chunk in values.chunks:
        keys.update(pc.unique(chunk.keys).to_pylist())
    return keys
