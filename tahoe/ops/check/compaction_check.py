"""The check of compactions against their commits. Tahoe reads a compaction only if commits are missing; other readers rely on it.

compaction x to y ──newest action per key──┐
commits x … y     ──newest action per key──┴──compare
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tahoe.base.exceptions import CorruptTable
from tahoe.log.files.commits import parse_commit
from tahoe.log.files.live_files import key_of
from tahoe.log.files.paths import ParsedLogPath
from tahoe.ops.check.subjects.violation import Reported, Violation
from tahoe.protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from tahoe.store.log_store import Entry, LogStore

__all__ = ["check_compactions"]


def check_compactions(store: LogStore, log: Sequence[tuple[Entry, ParsedLogPath]]) -> Iterator[Violation]:
    """Yield the differences between compactions and their commits, where all of these are in the log and can be read.

    Args:
        log: the files of a listing of the log, with their parsed names.
    """
    commits = {found.version: entry.name for entry, found in log if found.kind == "commit"}
    for entry, found in log:
        versions = range(found.version, found.last_version + 1)
        if found.kind == "compaction" and all(version in commits for version in versions):
            violations: list[Violation] = []
            with Reported(violations.append, "compaction", f"Compaction {entry.name}", found.version, entry.name):
                violations += _compaction(store, entry.name, found.version, [commits[version] for version in versions])
            yield from violations


def _compaction(store: LogStore, name: str, version: int, commits: Sequence[str]) -> Iterator[Violation]:
    own, *bodies = store.get_many([name, *commits])
    said = _newest(parse_commit(name, own, store.url), store.url)
    try:
        read = [parse_commit(commit, body, store.url) for commit, body in zip(commits, bodies, strict=True)]
    except CorruptTable:
        return  # reported by the check of commits
    given = _newest((action for actions in read for action in actions), store.url)
    wrong = [thing for thing in said.keys() | given.keys() if not _agree(said.get(thing), given.get(thing))]
    if wrong:
        kind, what = min(wrong)
        text = f"the compaction {name} says otherwise than its commits: {kind} {what}".rstrip()
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        yield Violation("compaction", f"{text}{more}. Delete it: nothing is lost with it.", version, name)


def _newest(actions: Iterable[Action], url: str) -> dict[tuple[str, str], Action]:
    newest: dict[tuple[str, str], Action] = {}
    for action in actions:
        match action:
            case AddFile() | RemoveFile():
                newest["file", key_of(action, url)] = action
            case SetTransaction():
                newest["txn", action.app_id] = action
            case DomainMetadata():
                newest["domainMetadata", action.domain] = action
            case Protocol():
                newest["protocol", ""] = action
            case Metadata():
                newest["metaData", ""] = action
    return newest


def _agree(said: Action | None, given: Action | None) -> bool:
    if said is None:  # a compaction may leave out removed entries
        return isinstance(given, RemoveFile) or (isinstance(given, DomainMetadata) and given.removed)
    if given is None or type(said) is not type(given):
        return False
    return isinstance(said, RemoveFile) or _meaning(said.to_json_value()) == _meaning(given.to_json_value())


def _meaning(value: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an action except `dataChange`, which compaction may change; JSON texts are parsed."""
    return {name: _parsed(member) for name, member in value.items() if name != "dataChange"}


def _parsed(member: Any) -> Any:
    if isinstance(member, str) and member[:1] == "{":
        try:
            return json.loads(member)
        except (ValueError, RecursionError):
            return member
    return member
