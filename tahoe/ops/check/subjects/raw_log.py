"""The log as it is written: JSON and Parquet as plain values, so that a rule sees the same as any other reader.

Nothing here refuses anything: unreadable parts are listed beside the readable ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import TahoeError
from tahoe.base.lazy import pq
from tahoe.log.files.listing import Checkpoint, checkpoints_in
from tahoe.log.files.paths import LAST_CHECKPOINT, LOG_FOLDER, ParsedLogPath, parse, sidecar_name
from tahoe.store.log_store import Entry, LogStore

__all__ = ["Actions", "CheckpointContents", "Commit", "RawLog", "SidecarRows", "actions_of_lines"]

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
        files = [(entry, parsed) for entry in self.entries if (parsed := parse(entry.name)) is not None]
        self.commits: dict[int, Entry] = {parsed.version: entry for entry, parsed in files if parsed.kind == "commit"}
        self.checksums: dict[int, Entry] = {parsed.version: entry for entry, parsed in files if parsed.kind == "checksum"}
        self.compactions: list[tuple[Entry, ParsedLogPath]] = [each for each in files if each[1].kind == "compaction"]
        self.checkpoints: dict[int, list[Checkpoint]] = checkpoints_in(self.entries)
        self.checkpoint_names: dict[str, int] = {
            entry.name: parsed.version for entry, parsed in files if parsed.kind == "checkpoint"
        }

    @cached_property
    def last_checkpoint(self) -> bytes | None:
        """The bytes of ``_last_checkpoint``; None if it does not exist."""
        return None if self.store.head(LAST_CHECKPOINT) is None else self.store.get(LAST_CHECKPOINT)

    def commit(self, version: int) -> Commit:
        """Read a commit of the listing."""
        entry = self.commits[version]
        actions, unreadable = self.lines(entry.name)
        return Commit(version, entry.name, entry.modified_ms, actions, unreadable)

    def lines(self, name: str) -> tuple[Actions, tuple[str, ...]]:
        """The actions of a file of lines, and the faults of its other lines."""
        try:
            return actions_of_lines(self.store.get(name))
        except TahoeError as error:
            return (), (error.message,)

    def checkpoint(self, checkpoint: Checkpoint) -> CheckpointContents:
        """The contents of the files of a complete checkpoint."""
        rows: Actions = ()
        unreadable: tuple[str, ...] = ()
        members: dict[str, frozenset[str]] = {}
        for entry in checkpoint.entries:
            if entry.name.endswith(".json"):
                more, faults = self.lines(entry.name)
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
