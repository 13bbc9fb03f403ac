"""Says what is wrong with a table: the tests' oracle and a user's fsck.

The log is replayed here a second time, one action after the other into a dictionary, so that the columnar replay, the
checkpoints and the checksums are measured against something that shares no code with them but the parser.

    commits ──fold──► live files at v ──compare──► checkpoint at v, checksum at v
                                       └─at the end─► Snapshot, storage, deletion vectors
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from tahoe.exceptions import TahoeError
from tahoe.log.checksum import read_checksum
from tahoe.log.files.commits import read_commit
from tahoe.log.files.paths import ParsedLogPath, checksum_name, commit_name, parse
from tahoe.log.replay import add_files, replay_checkpoint
from tahoe.log.segment import checkpoints_in
from tahoe.protocol.actions import Action, AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from tahoe.protocol.dv import decode
from tahoe.protocol.row_tracking import has_row_tracking, high_water_mark
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.store.log_store import Entry, LogStore

__all__ = ["TableCheck", "Violation", "check_table"]

_Key = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong.

    Args:
        code: what kind of thing: ``log-gap``, ``commit``, ``checkpoint``, ``checksum``, ``snapshot``, ``file``, ``vector``, ``statistics``,
            ``row-ids``.
        message: one sentence with names, what was expected and what was found.
        version: where in the log, if it is about one version.
        file: the store's name of the file, if it is about one.
    """

    code: str
    message: str
    version: int | None = None
    file: str | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def check_table(store: LogStore) -> list[Violation]:
    """All violations found. Raises only where there is no table, or storage fails.

    Checked: commits are contiguous and parse; transaction ids are unique, in-commit timestamps increase; each complete checkpoint
    and each checksum equal the replay of the commits; the snapshot equals it too; each live file is there with its size; each
    deletion vector decodes to its cardinality; statistics are JSON with a row count that the vector does not exceed; where rows are
    tracked, no row id is given twice, or beyond the high-water mark.
    """
    return TableCheck(store).violations()


class TableCheck:
    """Checks one table again and again, and reads what was committed since the last time.

    A log only grows at its end; where it did anything else (a checkpoint or checksum of an older version came or went, commits were
    cleaned up, the table was made anew), all of it is checked afresh.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._state = _Replay(store)
        self._seen: dict[str, Entry] = {}
        self._in_commits: list[Violation] = []
        self._newest: tuple[Snapshot, list[AddFile]] | None = None

    def violations(self) -> list[Violation]:
        """As `check_table`."""
        store = self._store
        entries = store.list_from("_delta_log")
        parsed = [(entry, found) for entry in entries if (found := parse(entry.name)) is not None]
        names = {entry.name: entry for entry, _ in parsed}
        changed = names.items() ^ self._seen.items()
        self._seen, complete = names, set(checkpoints_in(entries))
        if self._in_commits or not self._continues({parse(name) for name, _ in changed}):
            self._state, self._in_commits, self._newest = _Replay(store), [], None
        self._in_commits += self._state.run(parsed, complete)
        violations = [*_contiguous(parsed), *self._in_commits]
        try:
            if changed or self._newest is None:
                snapshot = Snapshot.at(store)
                self._newest = snapshot, add_files(snapshot.files())
        except TahoeError as error:
            if not parsed:
                raise
            return [*violations, Violation("snapshot", error.message)]
        violations += _snapshot(*self._newest, self._state)
        violations += _files(store, self._newest[1])
        violations += [found for add in self._newest[1] for found in _file_content(store, add)]
        violations += _row_ids(*self._newest)
        return violations

    def _continues(self, changed: set[ParsedLogPath | None]) -> bool:
        """Whether these files of the log can be looked at without going back: newer ones, and a checkpoint of the last version seen."""
        last = self._state.version
        return all(
            found is not None and (found.version > last or (found.version == last and found.kind == "checkpoint"))
            for found in changed
        )


def _contiguous(parsed: list[tuple[Entry, ParsedLogPath]]) -> Iterator[Violation]:
    versions = [found.version for _, found in parsed if found.kind == "commit"]
    for before, after in pairwise(versions):
        if after != before + 1:
            yield Violation("log-gap", f"versions {before + 1} to {after - 1} are missing from the log.", after)


@dataclass
class _Replay:
    """The live files by plain folding, from version 0 or from the oldest checkpoint."""

    store: LogStore
    checkpoints: set[int] = field(default_factory=set)
    live: dict[_Key, AddFile] | None = None
    version: int = -1
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transaction_ids: dict[str, int] = field(default_factory=dict)
    last_timestamp: int | None = None

    def run(self, parsed: list[tuple[Entry, ParsedLogPath]], checkpoints: set[int]) -> Iterator[Violation]:
        """Fold the commits that are newer than those folded before.

        Args:
            checkpoints: the versions that have a complete one.
        """
        if self.version in checkpoints - self.checkpoints:
            yield from self._checkpoint(self.version)
        self.checkpoints = checkpoints
        commits = {found.version for _, found in parsed if found.kind == "commit"}
        for version in sorted(version for version in commits if version > self.version):
            yield from self._step(version)

    def _step(self, version: int) -> Iterator[Violation]:
        try:
            actions = read_commit(self.store, version)
        except TahoeError as error:
            yield Violation("commit", error.message, version, commit_name(version))
            self.live = None
            return
        yield from self._commit_info(version, actions)
        if version == 0:
            self.live = {}
        if self.live is not None:
            _fold(self.live, actions)
        for action in actions:
            if isinstance(action, Protocol):
                self.protocol = action
            if isinstance(action, Metadata):
                self.metadata = action
        self.version = version
        if version in self.checkpoints:
            yield from self._checkpoint(version)
        if self.live is not None:
            yield from self._checksum(version, self.live)

    def _commit_info(self, version: int, actions: tuple[Action, ...]) -> Iterator[Violation]:
        info = next((a for a in actions if isinstance(a, CommitInfo)), None)
        if info is None:
            return
        before = self.transaction_ids.get(info.transaction_id or "")
        if info.transaction_id and before is not None:
            yield Violation("commit", f"versions {before} and {version} have the same txnId {info.transaction_id}.", version)
        if info.transaction_id:
            self.transaction_ids[info.transaction_id] = version
        timestamp = info.in_commit_timestamp
        if timestamp is not None and self.last_timestamp is not None and timestamp <= self.last_timestamp:
            yield Violation(
                "commit", f"the in-commit timestamp {timestamp} of version {version} is not after its predecessor's.", version
            )
        self.last_timestamp = timestamp if timestamp is not None else self.last_timestamp

    def _checkpoint(self, version: int) -> Iterator[Violation]:
        try:
            stored = {add.key: add for add in add_files(replay_checkpoint(self.store, version))}
        except TahoeError as error:
            yield Violation("checkpoint", error.message, version)
            return
        if self.live is None:
            self.live = dict(stored)
        elif _normal(stored, self.store.url) != _normal(self.live, self.store.url):
            yield Violation("checkpoint", _difference(f"the checkpoint of version {version}", stored, self.live), version)

    def _checksum(self, version: int, live: dict[_Key, AddFile]) -> Iterator[Violation]:
        try:
            checksum = read_checksum(self.store, version)
        except TahoeError as error:
            yield Violation("checksum", error.message, version, checksum_name(version))
            return
        if checksum is None:
            return
        size = sum(add.size for add in live.values())
        if (checksum.num_files, checksum.table_size_bytes) != (len(live), size):
            yield Violation(
                "checksum",
                f"the checksum of version {version} says {checksum.num_files} files of {checksum.table_size_bytes} bytes, "
                f"the log has {len(live)} of {size}.",
                version,
                checksum_name(version),
            )


def _fold(live: dict[_Key, AddFile], actions: tuple[Action, ...]) -> None:
    # Within one commit the order of lines says nothing: a vector's change is a remove and an add of one path.
    for action in actions:
        if isinstance(action, RemoveFile):
            live.pop(action.key, None)
    for action in actions:
        if isinstance(action, AddFile):
            live[action.key] = action


def _snapshot(snapshot: Snapshot, live: list[AddFile], state: _Replay) -> Iterator[Violation]:
    if state.version != snapshot.version:
        yield Violation(
            "snapshot", f"the snapshot is of version {snapshot.version}, the last commit is {state.version}.", state.version
        )
        return
    found = {add.key: add for add in live}
    if len(found) != len(live):
        yield Violation("snapshot", f"the snapshot has {len(live) - len(found)} files twice.", snapshot.version)
    if state.live is not None and _normal(found, snapshot.store.url) != _normal(state.live, snapshot.store.url):
        yield Violation("snapshot", _difference("the snapshot", found, state.live), snapshot.version)
    if state.protocol is not None and state.protocol != snapshot.protocol:
        yield Violation("snapshot", "the snapshot's protocol is not that of the last protocol action.", snapshot.version)
    if state.metadata is not None and state.metadata != snapshot.metadata:
        yield Violation("snapshot", "the snapshot's metadata is not that of the last metaData action.", snapshot.version)


def _files(store: LogStore, live: list[AddFile]) -> Iterator[Violation]:
    present = {entry.name: entry.size for entry in store.walk()}
    for add in live:
        try:
            name = decode_path(add.path, store.url)
        except TahoeError as error:
            yield Violation("file", error.message, file=add.path)
            continue
        if name not in present:
            yield Violation("file", f"data file {name} is missing.", file=name)
        elif present[name] != add.size:
            yield Violation("file", f"data file {name} has {present[name]} bytes, the log says {add.size}.", file=name)


def _file_content(store: LogStore, add: AddFile) -> Iterator[Violation]:
    rows: int | None = None
    if add.stats is not None:
        try:
            rows = int(json.loads(add.stats)["numRecords"])
        except (ValueError, KeyError, TypeError) as error:
            yield Violation(
                "statistics", f"the statistics of {add.path} cannot be read ({type(error).__name__}: {error}).", file=add.path
            )
    vector = add.deletion_vector
    if vector is None:
        return
    try:
        decode(vector, store.get, store.url)
    except TahoeError as error:
        yield Violation("vector", error.message, file=add.path)
    if rows is not None and vector.cardinality > rows:
        yield Violation("vector", f"the deletion vector of {add.path} marks {vector.cardinality} of {rows} rows.", file=add.path)


def _row_ids(snapshot: Snapshot, live: list[AddFile]) -> Iterator[Violation]:
    if not has_row_tracking(snapshot.config):
        return
    for add in live:
        if add.base_row_id is None or add.default_row_commit_version is None:
            yield Violation(
                "row-ids", f"the table tracks rows, and file {add.path} has no row ids or no row version.", file=add.path
            )
    tracked = sorted((add for add in live if add.base_row_id is not None), key=lambda add: add.base_row_id or 0)
    ends = [(add.base_row_id or 0) + _num_records(add) for add in tracked]
    for end, before, after in zip(ends, tracked, tracked[1:], strict=False):
        if (after.base_row_id or 0) < end:
            yield Violation("row-ids", f"files {before.path} and {after.path} have row ids in common.", file=after.path)
    mark = high_water_mark(snapshot.state.domains)
    if ends and (mark is None or max(ends) - 1 > mark):
        yield Violation("row-ids", f"the highest row id given is {max(ends) - 1}, but the table's high-water mark says {mark}.")


def _num_records(add: AddFile) -> int:
    try:
        return int(json.loads(add.stats or "{}").get("numRecords", 0))
    except ValueError:
        return 0  # told where statistics are looked at


def _normal(files: dict[_Key, AddFile], root: str) -> dict[_Key, tuple[int, tuple[tuple[str, str | None], ...]]]:
    """What two replays must agree on, by decoded path."""
    return {
        (decode_path(add.path, root), add.key[1]): (
            add.size,
            tuple(sorted((k, v or None) for k, v in add.partition_values.items())),
        )
        for add in files.values()
    }


def _difference(what: str, found: dict[_Key, AddFile], expected: dict[_Key, AddFile]) -> str:
    missing, extra = sorted(expected.keys() - found.keys(), key=str), sorted(found.keys() - expected.keys(), key=str)
    return (
        f"{what} has {len(found)} live files, the commits give {len(expected)}: {len(missing)} missing"
        f"{f' (e.g. {missing[0][0]})' if missing else ''}, {len(extra)} too many{f' (e.g. {extra[0][0]})' if extra else ''}."
    )
