"""Rules of a compaction and its commits. Tahoe reads a compaction only if commits are missing; other readers rely on it.

compaction x to y ──newest action for each key──┐
commits x … y     ──newest action for each key──┴──compare
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tahoe.ops.check.subjects.raw_log import Commit, RawLog
from tahoe.ops.check.subjects.replayed_log import ReplayedLog
from tahoe.ops.check.subjects.rule import Breaches, RuleList

RULES: RuleList[CompactionFile] = RuleList()

_Key = tuple[str, str]
"""Kind and name of the logical file, application or domain of an action; an empty name for protocol and metadata."""
_Action = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class CompactionFile:
    """A compaction, and the commits that it replaces."""

    root: str
    rows: Commit
    commits: tuple[Commit, ...]

    @cached_property
    def differences(self) -> list[tuple[_Key, _Action | None, _Action | None]]:
        """The keys whose newest actions differ, sorted, with the actions of the compaction and of the commits.

        Empty if a commit cannot be read, which is reported by its own rule.
        """
        if any(commit.unreadable for commit in self.commits):
            return []
        actual = dict(self._keyed(self.rows.actions))
        expected = dict(self._keyed(action for commit in self.commits for action in commit.actions))
        keys = sorted(actual.keys() | expected.keys())
        different = [key for key in keys if _comparable(actual.get(key)) != _comparable(expected.get(key))]
        return [(key, actual.get(key), expected.get(key)) for key in different]

    def repeated_keys(self) -> list[_Key]:
        """The keys of which the compaction has more than one action."""
        counts = Counter(key for key, _ in self._keyed(self.rows.actions))
        return sorted(key for key, count in counts.items() if count > 1)

    def _keyed(self, actions: Iterable[tuple[str, object]]) -> Iterator[tuple[_Key, _Action]]:
        state = ReplayedLog(self.root)
        for name, value in actions:
            if not isinstance(value, dict):
                continue
            if name in ("add", "remove"):
                yield ("file", "\0".join(state.key(value)).rstrip("\0")), (name, value)
            elif name in ("txn", "domainMetadata"):
                yield (name, str(value.get("appId" if name == "txn" else "domain"))), (name, value)
            elif name in ("protocol", "metaData"):
                yield (name, ""), (name, value)


def compaction_files(log: RawLog) -> Iterator[CompactionFile]:
    """Read the compactions of which all commits exist, and these commits."""
    for entry, path in log.compactions:
        versions = range(path.version, path.last_version + 1)
        if all(version in log.commits for version in versions):
            yield CompactionFile(log.store.url, log.lines(path.version, entry), log.commits_of(versions))


def _comparable(action: _Action | None) -> Any:
    """The members on which a compaction must agree: not `dataChange`, which it may change, and nothing of removed files but the key."""
    if action is None or action[0] == "remove":
        return action and action[0]
    members = {name: _parsed(name, member) for name, member in action[1].items() if name != "dataChange"}
    return action[0], {name: member for name, member in members.items() if member not in (None, {})}


def _parsed(name: str, member: object) -> Any:
    if name.endswith("Features") and isinstance(member, list):
        return sorted(map(str, member))
    if name == "deletionVector" and isinstance(member, dict):
        return {part: value for part, value in member.items() if value is not None}
    if not isinstance(member, str) or member[:1] != "{":
        return member
    try:
        return json.loads(member)
    except (ValueError, RecursionError):
        return member


@RULES.rule("Log Compaction Files", quick="compaction")
def compactions_are_lines_of_actions(compaction: CompactionFile) -> Breaches:
    """A compaction has the format of commits, and an action for each key."""
    faults = compaction.rows.unreadable
    if faults:
        yield faults[0] + (f", and {len(faults) - 1} more" if len(faults) > 1 else "")
    for kind, key in compaction.repeated_keys():
        yield f"the compaction has more than one action of {kind} {key}".rstrip()


@RULES.rule("Log Compaction Files", quick="compaction", strict=False)
def compactions_agree_with_their_commits(compaction: CompactionFile) -> Breaches:
    """A compaction contains the newest action for each key; it may leave out removed entries."""
    if compaction.rows.unreadable:
        return
    keys = [key for key, actual, expected in compaction.differences if actual is not None or not _is_removal(expected)]
    if keys:
        text = f"the compaction says otherwise than its commits: {' '.join(keys[0])}".rstrip()
        more = f", and {len(keys) - 1} more" if len(keys) > 1 else ""
        yield f"{text}{more}. Delete it: nothing is lost with it"


def _is_removal(action: _Action | None) -> bool:
    return action is not None and (action[0] == "remove" or (action[0] == "domainMetadata" and bool(action[1].get("removed"))))


@RULES.rule("Log Compaction Files")
def compactions_say_what_their_commits_say(compaction: CompactionFile) -> Breaches:
    """A compaction contains exactly the newest action for each key."""
    for key, actual, expected in compaction.differences[:5]:
        yield f"it says {str(actual)[:80]} of {key}, and its commits {str(expected)[:80]}"


@RULES.rule("Action Reconciliation")
def compactions_keep_no_provenance(compaction: CompactionFile) -> Breaches:
    """A compaction contains no `commitInfo`."""
    if compaction.rows.of("commitInfo"):
        yield "it has a commitInfo action"
