"""Commits and other JSON lines of the log, read exactly: every action as a frozen value, every fault by file and line.

`tahoe.log.files.json_columns` reads many commits at once into columns; where it meets anything unusual it asks this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import islice
from typing import Any

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.log.files.commit_checksum import fault_in_commit_checksum
from tahoe.log.files.paths import commit_name, parse
from tahoe.protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    action_from_json,
)
from tahoe.store.log_store import LogStore


def read_commit(store: LogStore, version: int) -> tuple[Action, ...]:
    """Read the actions of one version's commit, in the order of the file, without actions that this version of Tahoe does not know.

    Raises:
        NotFound: ``DELTA_VERSION_NOT_FOUND``: the log has no such commit, or no longer has it.
        CorruptTable: the file is corrupt; the message names it, the line, and the expected content.
    """
    name = commit_name(version)
    try:
        data = store.get(name)
    except NotFound as error:
        raise NotFound(
            f"Table {store.url}: the commit {name} is not in the log. Versions older than the log's retention lose "
            "their commits; "
            "ask for a newer one.",
            code="DELTA_VERSION_NOT_FOUND",
            table=store.url,
            version=version,
            file=name,
        ) from error
    return parse_commit(name, data, store.url)


def commit_bodies(store: LogStore, versions: Iterable[int]) -> Iterator[tuple[int, bytes | None]]:
    """Yield the bytes of commits in the requested order, reading a few dozen at once while they are small.

    The bytes are None for a commit of a batch in which one is missing: `read_commit` shows which, with its error.
    """
    left, size = iter(versions), 2
    while batch := list(islice(left, size)):
        try:
            bodies: Sequence[bytes | None] = store.get_many([commit_name(version) for version in batch])
        except NotFound:
            bodies = [None] * len(batch)
        read = sum(len(body or b"") for body in bodies)
        size = min(4 * size, _MOST_AT_ONCE) if read < _FEW_BYTES else max(size // 4, 1)
        yield from zip(batch, bodies, strict=True)


def read_commits(store: LogStore, versions: Iterable[int]) -> Iterator[tuple[int, Iterator[Action]]]:
    """Yield versions with the actions of their commits, in the requested order.

    An action becomes an object only when the caller requests it, because a commit may have a million. The errors of `read_commit` are raised
    then, so a caller that must find every error reads all actions.
    """
    for version, body in commit_bodies(store, versions):
        yield version, iter(read_commit(store, version)) if body is None else _each_action(commit_name(version), body, store.url)


_MOST_AT_ONCE = 64
_FEW_BYTES = 4 * 1024 * 1024


def parse_commit(name: str, data: bytes, url: str) -> tuple[Action, ...]:
    """The actions of a commit's bytes.

    Args:
        name: the file's name, for messages.
        url: the table's URL, for messages.

    Raises:
        CorruptTable: empty, cut, not JSON, an action of the wrong shape, two actions that contradict each other, or bytes that its
            embedded checksum (`tahoe.log.files.commit_checksum`) contradicts.
    """
    return tuple(_each_action(name, data, url))


def _each_action(name: str, data: bytes, url: str) -> Iterator[Action]:
    check_seal(name, data, url)
    return without_duplicates((action for _, action in parse_actions(name, data, url)), name, url)


def parse_actions(name: str, data: bytes, url: str) -> Iterator[tuple[int, Action]]:
    """Line number (from 1) and action of each line. See `parse_commit`, without its check across lines."""
    if not data or data.isspace():
        fault = "is empty (0 bytes)" if not data else "contains no action"
        raise _damaged(name, url, fault)
    # `BytesIO` does not copy the data: a commit may have hundreds of megabytes.
    for number, line in enumerate(BytesIO(data), start=1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        stripped = line.strip(b" \t\r\n")
        if stripped:
            action = _action(_value(stripped, name, number, url), name, number, url)
            if action is not None:
                yield number, action


def check_seal(name: str, data: bytes, url: str) -> None:
    """Raise `CorruptTable` where the bytes of a commit are not those that were written under its name, if it carries an embedded checksum."""
    parsed = parse(name)
    if parsed is not None and parsed.kind == "commit":
        fault = fault_in_commit_checksum(parsed.version, data)
        if fault is not None:
            raise _damaged(name, url, fault)


def check_no_duplicates(actions: Sequence[Action], name: str, url: str) -> None:
    """Raise where two actions of one commit reconcile with each other: their order would decide, and it has no meaning.

    (PROTOCOL.md, "Additional Requirements for Writers", "Delta Log Entries".)
    """
    for _ in without_duplicates(actions, name, url):
        pass


def without_duplicates(actions: Iterable[Action], name: str, url: str) -> Iterator[Action]:
    """Yield the actions of a commit, with the errors of `check_no_duplicates`."""
    seen = set()
    for action in actions:
        identity = _identity(action)
        if identity is not None:
            if identity in seen:
                raise duplicate(name, url, *identity)
            seen.add(identity)
        yield action


def duplicate(name: str, url: str, kind: str, subject: object) -> CorruptTable:
    """Return the error for two actions of one commit about the same object."""
    of = f" of '{subject[0] if isinstance(subject, tuple) else subject}'" if subject else ""
    return CorruptTable(
        f"Table {url}: the commit {name} contains more than one {kind} action{of}; the specification allows one, for their order "
        "has no meaning. Restore the file from a backup.",
        code="DELTA_DUPLICATE_ACTIONS_FOUND",
        table=url,
        file=name,
        action=kind,
    )


def _identity(action: Action) -> tuple[str, object] | None:
    match action:
        case AddFile() | RemoveFile():
            return "file", action.key
        case Protocol():
            return "protocol", ""
        case Metadata():
            return "metaData", ""
        case SetTransaction():
            return "txn", action.app_id
        case DomainMetadata():
            return "domainMetadata", action.domain
    return None


def _value(line: bytes, name: str, number: int, url: str) -> Mapping[str, Any]:
    try:
        value = json.loads(line.decode("utf-8"), object_pairs_hook=_without_duplicates)
        if b"\\ud" in line or b"\\uD" in line:
            json.dumps(value, ensure_ascii=False).encode("utf-8")  # half of a surrogate pair is no text
    except RecursionError as error:
        raise _damaged(name, url, f"line {number} is nested too deep to be read") from error
    except ValueError as error:
        raise _damaged(name, url, f"line {number} is no valid JSON ({error}; it begins with {_shown(line)})") from error
    if not isinstance(value, dict):
        raise _damaged(name, url, f"line {number} is no JSON object (it begins with {_shown(line)})")
    return value


def _action(value: Mapping[str, object], name: str, number: int, url: str) -> Action | None:
    try:
        return action_from_json(value)
    except CorruptTable as error:
        raise _damaged(name, url, f"line {number}: {error.message}") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the member '{twice}' occurs twice")
    return value


def _damaged(name: str, url: str, fault: str) -> CorruptTable:
    return CorruptTable(
        f"Table {url}: the log file {name} is damaged: {fault}. Restore the file from a backup; versions before it, and those "
        "after the next checkpoint, can still be read.",
        code="DELTA_TXN_LOG_FAILED_INTEGRITY",
        table=url,
        file=name,
        version=parsed.version if (parsed := parse(name)) else None,
    )


def _shown(line: bytes) -> str:
    return repr(line[:60].decode("utf-8", "replace"))
