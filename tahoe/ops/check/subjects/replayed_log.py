"""Action Reconciliation in its simplest form: one commit after the other into dictionaries. Shares no code with the readers of the log."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tahoe.base.exceptions import TahoeError
from tahoe.log.files.live_files import canonical_path
from tahoe.ops.check.subjects.raw_log import Actions, Commit
from tahoe.ops.check.subjects.table_settings import Settings

__all__ = ["Key", "ReplayedLog", "Step", "unique_id"]

Key = tuple[str, str]
"""The identity of a logical file: its path, decoded, and its vector's unique id, empty without one."""


@dataclass
class ReplayedLog:
    """The state of a version.

    Args:
        root: the table's URL.
        complete: whether all commits since version 0 were folded, so that a missing entry never existed.
        ever_added: the last `add` of each path, live or not.
        written_under: the settings when each path was first added; None if only a checkpoint names it.
        vectors: unique ids of all vectors that any commit added.
    """

    root: str
    version: int = -1
    complete: bool = False
    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    adds: dict[Key, dict[str, Any]] = field(default_factory=dict)
    removes: dict[Key, dict[str, Any]] = field(default_factory=dict)
    transactions: dict[str, dict[str, Any]] = field(default_factory=dict)
    domains: dict[str, dict[str, Any]] = field(default_factory=dict)
    ever_added: dict[str, dict[str, Any]] = field(default_factory=dict)
    written_under: dict[str, Settings | None] = field(default_factory=dict)
    vectors: set[str] = field(default_factory=set)
    settings: Settings | None = None
    timestamp: int | None = None
    modified_ms: int | None = None

    def key(self, action: dict[str, Any]) -> Key:
        """The logical file of an `add` or `remove`."""
        return self.path(action), unique_id(action.get("deletionVector"))

    def path(self, action: dict[str, Any]) -> str:
        """The action's path, decoded; as written if it cannot be decoded."""
        path = str(action.get("path"))
        try:
            return canonical_path(path, self.root)
        except TahoeError:
            return path

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
        self.complete = self.complete or commit.version == 0
        self.take(commit.actions)
        self.version, self.modified_ms = commit.version, commit.modified_ms
        times = [info["inCommitTimestamp"] for info in commit.of("commitInfo") if isinstance(info.get("inCommitTimestamp"), int)]
        self.timestamp = times[0] if times else self.timestamp

    def begin(self, version: int, actions: Actions) -> None:
        """Start from a checkpoint."""
        self.take(actions)
        self.version = version
        if self.protocol is not None and self.metadata is not None:
            self.settings = Settings(self.protocol, self.metadata)

    def take(self, actions: Iterable[tuple[str, Any]]) -> None:
        """Apply actions, the newest for each key; within one version, removes come first."""
        objects = [(name, value) for name, value in actions if isinstance(value, dict)]
        for name, value in objects:
            if name == "remove":
                self.adds.pop(self.key(value), None)
                self.removes[self.key(value)] = value
        for name, value in objects:
            if name == "add":
                self._add(value)
            elif name == "txn":
                self.transactions[str(value.get("appId"))] = value
            elif name == "domainMetadata":
                self._domain(value)
            elif name == "protocol":
                self.protocol = value
            elif name == "metaData":
                self.metadata = value

    def _add(self, value: dict[str, Any]) -> None:
        key = self.key(value)
        self.adds[key] = self.ever_added[key[0]] = value
        self.written_under.setdefault(key[0], self.settings)
        self.removes.pop(key, None)
        if key[1]:
            self.vectors.add(key[1])

    def _domain(self, value: dict[str, Any]) -> None:
        name = str(value.get("domain"))
        if value.get("removed"):
            self.domains.pop(name, None)
        else:
            self.domains[name] = value


@dataclass(frozen=True)
class Step:
    """A commit in sequence: the state before it, and the settings in force with it."""

    commit: Commit
    before: ReplayedLog
    settings: Settings


def unique_id(vector: Any) -> str:
    """The id of a deletion vector's descriptor ("Derived Fields"); empty for none."""
    if not isinstance(vector, dict):
        return ""
    offset = vector.get("offset")
    return f"{vector.get('storageType')}{vector.get('pathOrInlineDv')}" + ("" if offset is None else f"@{offset}")
