"""Action Reconciliation in its simplest form: one commit after the other into dictionaries. Shares no code with the readers of the log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tahoe.log.files.live_files import canonical_path
from tahoe.ops.check.subjects.raw_log import Actions, Commit
from tahoe.ops.check.subjects.table_settings import Settings

Key = tuple[str, str]
"""The identity of a logical file: its path, decoded, and its vector's unique id, empty without one."""


@dataclass(slots=True)
class Totals:
    """Sums over the live files: files, bytes, files with a deletion vector, deleted rows."""

    files: int = 0
    bytes: int = 0
    vectors: int = 0
    deleted: int = 0

    def count(self, size: int, deleted: int | None, sign: int) -> None:
        """Add a file, or remove it with the sign -1.

        Args:
            deleted: the cardinality of its vector; None without one.
        """
        self.files += sign
        self.bytes += sign * size
        if deleted is not None:
            self.vectors += sign
            self.deleted += sign * deleted


@dataclass
class LogState:
    """The state of a version without its files.

    Args:
        root: the table's URL.
        complete: whether all commits since version 0 were folded, so that a missing entry never existed.
        known: whether it began with version 0 or a checkpoint.
        timestamp: the last in-commit timestamp.
    """

    root: str
    version: int = -1
    complete: bool = False
    known: bool = False
    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    transactions: dict[str, dict[str, Any]] = field(default_factory=dict)
    domains: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: Settings | None = None
    timestamp: int | None = None
    totals: Totals = field(default_factory=Totals)

    def take_single(self, name: str, value: dict[str, Any]) -> None:
        """Apply an action that is not of a file."""
        if name == "txn":
            self.transactions[str(value.get("appId"))] = value
        elif name == "domainMetadata" and value.get("removed"):
            self.domains.pop(str(value.get("domain")), None)
        elif name == "domainMetadata":
            self.domains[str(value.get("domain"))] = value
        elif name == "protocol":
            self.protocol = value
        elif name == "metaData":
            self.metadata = value

    def differences(self, protocol: object, metadata: object) -> Iterator[str]:
        """Yield a sentence for each difference of a protocol and a metadata, as JSON, from this state; None is no difference."""
        if _differing_members(protocol, self.protocol):
            yield f"its protocol is {json.dumps(protocol)}, the commits give {json.dumps(self.protocol)}"
        names = _differing_members(metadata, self.metadata)
        if names:
            yield f"its metadata is not that of the last metaData action of the commits: {', '.join(names)} differ"


def _differing_members(stated: object, expected: dict[str, Any] | None) -> list[str]:
    if not isinstance(stated, dict) or expected is None or stated == expected:
        return []
    actual, expected = _comparable(stated), _comparable(expected)
    return sorted(name for name in actual.keys() | expected.keys() if actual.get(name) != expected.get(name))


def _comparable(value: dict[str, Any]) -> dict[str, Any]:
    """The members of a protocol or metadata that are not null or empty, with sorted lists of features and the schema as a value."""
    members = {name: _comparable_member(name, member) for name, member in value.items() if name in _SETTINGS}
    return {name: member for name, member in members.items() if member not in (None, {}, "")}


def _comparable_member(name: str, member: object) -> Any:
    if name.endswith("Features") and isinstance(member, list):
        return sorted(map(str, member))
    if name == "format" and isinstance(member, dict):
        return {option: text for option, text in member.items() if text}
    if name == "schemaString" and isinstance(member, str):
        try:
            return json.loads(member)
        except (ValueError, RecursionError):
            return member
    return member


_SETTINGS = {"minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures", "id", "name", "description", "format"}
_SETTINGS |= {"schemaString", "partitionColumns", "configuration", "createdTime"}


@dataclass
class ReplayedLog(LogState):
    """The state of a version, with everything that any commit said of its files.

    Args:
        ever_added: the last `add` of each path, live or not.
        written_under: the settings when each path was first added; None if only a checkpoint names it.
        vectors: unique ids of all vectors that any commit added.
    """

    adds: dict[Key, dict[str, Any]] = field(default_factory=dict)
    removes: dict[Key, dict[str, Any]] = field(default_factory=dict)
    ever_added: dict[str, dict[str, Any]] = field(default_factory=dict)
    written_under: dict[str, Settings | None] = field(default_factory=dict)
    vectors: set[str] = field(default_factory=set)

    def key(self, action: dict[str, Any]) -> Key:
        """The logical file of an `add` or `remove`."""
        return self.path(action), unique_id(action.get("deletionVector"))

    def path(self, action: dict[str, Any]) -> str:
        """The action's path in the form of `canonical_path`."""
        return canonical_path(str(action.get("path")), self.root)

    def live_paths(self) -> dict[str, Key]:
        """The live logical file of each path."""
        return {key[0]: key for key in self.adds}

    @property
    def high_water_mark(self) -> int | None:
        """The highest assigned row id; None if it is unknown."""
        try:
            mark = json.loads(self.domains["delta.rowTracking"]["configuration"])["rowIdHighWaterMark"]
        except (KeyError, ValueError, TypeError):
            return None
        return mark if isinstance(mark, int) else None

    def settings_with(self, actions: Commit) -> Settings | None:
        """The settings after a commit has been folded; None if no protocol or no metadata was seen."""
        protocol, metadata = actions.of("protocol")[-1:], actions.of("metaData")[-1:]
        if not protocol and not metadata:
            return self.settings
        both = (protocol[0] if protocol else self.protocol), (metadata[0] if metadata else self.metadata)
        return None if both[0] is None or both[1] is None else Settings(both[0], both[1])

    def fold(self, commit: Commit) -> None:
        """Fold a commit into the state."""
        self.settings = self.settings_with(commit)
        if commit.version == 0:
            self.complete = self.known = True
        self.take(commit.actions)
        self.version = commit.version
        times = [info["inCommitTimestamp"] for info in commit.of("commitInfo") if isinstance(info.get("inCommitTimestamp"), int)]
        self.timestamp = times[0] if times else self.timestamp

    def begin(self, version: int, actions: Actions) -> None:
        """Start from a checkpoint."""
        self.take(actions)
        self.version, self.known = version, True
        if self.protocol is not None and self.metadata is not None:
            self.settings = Settings(self.protocol, self.metadata)

    def take(self, actions: Iterable[tuple[str, object]]) -> None:
        """Apply actions, the newest for each key; within one version, removes come first."""
        objects = [(name, value) for name, value in actions if isinstance(value, dict)]
        for name, value in objects:
            if name == "remove":
                self._drop(self.key(value))
                self.removes[self.key(value)] = value
        for name, value in objects:
            if name == "add":
                self._add(value)
            else:
                self.take_single(name, value)

    def _add(self, value: dict[str, Any]) -> None:
        key = self.key(value)
        self._drop(key)
        self.adds[key] = self.ever_added[key[0]] = value
        self.totals.count(*_counts(value), 1)
        self.written_under.setdefault(key[0], self.settings)
        self.removes.pop(key, None)
        if key[1]:
            self.vectors.add(key[1])

    def _drop(self, key: Key) -> None:
        add = self.adds.pop(key, None)
        if add is not None:
            self.totals.count(*_counts(add), -1)


def _counts(add: dict[str, Any]) -> tuple[int, int | None]:
    """Return the size, and the cardinality of the vector."""
    size, vector = add.get("size"), add.get("deletionVector")
    deleted = vector.get("cardinality") if isinstance(vector, dict) else None
    count = deleted if isinstance(deleted, int) else 0
    return size if isinstance(size, int) else 0, count if vector else None


@dataclass(frozen=True)
class Step:
    """A commit in sequence: the state before it, and the settings in force with it."""

    commit: Commit
    before: ReplayedLog
    settings: Settings


def unique_id(vector: object) -> str:
    """The id of a deletion vector's descriptor ("Derived Fields"); empty for none."""
    if not isinstance(vector, dict):
        return ""
    offset = vector.get("offset")
    return f"{vector.get('storageType')}{vector.get('pathOrInlineDv')}" + ("" if offset is None else f"@{offset}")
