"""The log as it is written: JSON and Parquet as plain values, so that a rule sees the same as any other reader.

Nothing here refuses anything: unreadable parts are listed beside the readable ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import TahoeError
from tahoe.base.lazy import pq
from tahoe.base.packing import packed
from tahoe.log.files.listing import Checkpoint, checkpoints_in
from tahoe.log.files.paths import LAST_CHECKPOINT, LOG_FOLDER, parse, sidecar_name
from tahoe.store.log_store import Entry, LogStore

_BYTES_AT_ONCE = 32 << 20
_FILES_AT_ONCE = 256

Actions = tuple[tuple[str, Any], ...]
"""Each action's name and value, in the order of the file."""


@dataclass(frozen=True)
class Commit:
    """One commit: its actions, and the faults of lines that are no actions."""

    version: int
    name: str
    modified_ms: int
    actions: Actions
    unreadable: tuple[str, ...] = ()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the values of all actions of a kind, without values that are not objects."""
        return [value for name, value in self.actions if name == kind and isinstance(value, dict)]


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The bytes of a version's commit and checksum, or the errors of reading them; None for a missing checksum."""

    version: int
    entry: Entry
    commit: bytes | TahoeError
    checksum: bytes | TahoeError | None

    def lines(self) -> Commit:
        """Return the commit's actions."""
        return commit_of(self.version, self.entry, self.commit)


@dataclass(frozen=True)
class SidecarRows:
    """A sidecar that a checkpoint names: the action, the file's size in storage, and its rows; None for missing parts."""

    action: dict[str, Any]
    size: int | None
    rows: Actions | None


@dataclass(frozen=True)
class CheckpointContents:
    """A complete checkpoint as its files store it.

    Args:
        rows: of the top level, or of all parts.
        members: the members of each action's column, for the Parquet format.
    """

    checkpoint: Checkpoint
    rows: Actions
    sidecars: tuple[SidecarRows, ...]
    members: dict[str, frozenset[str]] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The store's name of its first file."""
        return self.checkpoint.entries[0].name

    @cached_property
    def all_rows(self) -> Actions:
        """All rows, including those of the sidecars."""
        return self.rows + tuple(row for sidecar in self.sidecars for row in sidecar.rows or ())

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the values of all actions of a kind, including those in sidecars."""
        return [value for name, value in self.all_rows if name == kind and isinstance(value, dict)]


class RawLog:
    """One listing of a log, and the contents of its files."""

    def __init__(self, store: LogStore) -> None:
        self.store = store
        self.entries = store.list_from(LOG_FOLDER)
        self.files = [(entry, path) for entry in self.entries if (path := parse(entry.name)) is not None]
        self.commits = {path.version: entry for entry, path in self.files if path.kind == "commit"}
        self.checksums = {path.version: entry for entry, path in self.files if path.kind == "checksum"}
        self.compactions = [(entry, path) for entry, path in self.files if path.kind == "compaction"]
        self.checkpoints: dict[int, list[Checkpoint]] = checkpoints_in(self.entries)
        self.checkpoint_names = {entry.name: path.version for entry, path in self.files if path.kind == "checkpoint"}

    @cached_property
    def last_checkpoint(self) -> bytes | None:
        """The bytes of ``_last_checkpoint``; None if it does not exist."""
        return None if self.store.head(LAST_CHECKPOINT) is None else self.store.get(LAST_CHECKPOINT)

    def versions(self, versions: Sequence[int]) -> Iterator[VersionFiles]:
        """Read the commits and checksums of versions; many files at once, bounded in number and bytes."""
        for block in packed(versions, self._size, _BYTES_AT_ONCE, _FILES_AT_ONCE):
            with_checksum = [version for version in block if version in self.checksums]
            names = [*(self.commits[version].name for version in block), *(self.checksums[each].name for each in with_checksum)]
            contents = self._get_many(names)
            checksums = dict(zip(with_checksum, contents[len(block) :], strict=True))
            for version, commit in zip(block, contents, strict=False):
                yield VersionFiles(version, self.commits[version], commit, checksums.get(version))

    def commits_of(self, versions: Sequence[int]) -> tuple[Commit, ...]:
        """Read the commits of versions."""
        entries = [self.commits[version] for version in versions]
        contents = self._get_many([entry.name for entry in entries])
        return tuple(map(commit_of, versions, entries, contents))

    def lines(self, version: int, entry: Entry) -> Commit:
        """Read a file in the format of a commit."""
        return commit_of(version, entry, self._get(entry.name))

    def _size(self, version: int) -> int:
        return self.commits[version].size + (self.checksums[version].size if version in self.checksums else 0)

    def _get_many(self, names: list[str]) -> list[bytes | TahoeError]:
        try:
            return list(self.store.get_many(names))
        except TahoeError:
            return [self._get(name) for name in names]

    def _get(self, name: str) -> bytes | TahoeError:
        try:
            return self.store.get(name)
        except TahoeError as error:
            return error

    def checkpoint(self, checkpoint: Checkpoint) -> CheckpointContents:
        """The contents of the files of a complete checkpoint."""
        rows: Actions = ()
        unreadable: tuple[str, ...] = ()
        members: dict[str, frozenset[str]] = {}
        for entry in checkpoint.entries:
            if entry.name.endswith(".json"):
                lines = self.lines(checkpoint.version, entry)
                more, faults = lines.actions, lines.unreadable
            else:
                more, faults, members = self._parquet(entry.name)
            rows, unreadable = rows + more, unreadable + faults
        sidecars = tuple(self._sidecar(value) for name, value in rows if name == "sidecar" and isinstance(value, dict))
        return CheckpointContents(checkpoint, rows, sidecars, members, unreadable)

    def _sidecar(self, action: dict[str, Any]) -> SidecarRows:
        try:
            name = sidecar_name(str(action.get("path")), self.store.url)
            entry = self.store.head(name)
        except TahoeError:
            return SidecarRows(action, None, None)
        if entry is None:
            return SidecarRows(action, None, None)
        rows, faults, _ = self._parquet(name)
        return SidecarRows(action, entry.size, None if faults else rows)

    def _parquet(self, name: str) -> tuple[Actions, tuple[str, ...], dict[str, frozenset[str]]]:
        try:
            table = pq.read_table(self.store.open_input(name))
        except (TahoeError, pa.ArrowException, OSError) as error:
            return (), (f"{name} cannot be read: {error}",), {}
        members = {
            each.name: frozenset(part.name for part in each.type) for each in table.schema if pa.types.is_struct(each.type)
        }
        return tuple(_actions_of_rows(table)), (), members


def commit_of(version: int, entry: Entry, content: bytes | TahoeError) -> Commit:
    """Return the actions of a commit or compaction.

    Args:
        content: the file's bytes, or the error of reading it.
    """
    actions, unreadable = ((), (content.message,)) if isinstance(content, TahoeError) else actions_of_lines(content)
    return Commit(version, entry.name, entry.modified_ms, actions, unreadable)


def actions_of_lines(data: bytes) -> tuple[Actions, tuple[str, ...]]:
    """Return the actions of a commit, and a sentence for each invalid line."""
    actions: list[tuple[str, Any]] = []
    faults = []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            faults.append(f"line {number} is no JSON: {error}")
            continue
        if not isinstance(value, dict) or len(value) != 1:
            faults.append(f"line {number} is not one action: {line[:80].decode(errors='replace')}")
            continue
        actions += value.items()
    return tuple(actions), tuple(faults)


def _actions_of_rows(table: pa.Table) -> Iterator[tuple[str, Any]]:
    """Yield a checkpoint's rows as actions in the form of a commit: null members are omitted."""
    for row in table.to_pylist(maps_as_pydicts="lossy"):
        for name, value in row.items():
            if isinstance(value, dict):
                action = {member: inner_value for member, inner_value in value.items() if inner_value is not None}
                for inner in ("deletionVector", "format"):
                    if isinstance(action.get(inner), dict):
                        action[inner] = {
                            member: inner_value for member, inner_value in action[inner].items() if inner_value is not None
                        }
                yield name, action
