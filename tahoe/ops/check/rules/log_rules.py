"""Rules of the log's folder, according to a listing, and of `_last_checkpoint`."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from tahoe.log.files.last_checkpoint import checksum_of_json
from tahoe.log.files.paths import LAST_CHECKPOINT, file_name, parse
from tahoe.ops.check.subjects.raw_log import RawLog
from tahoe.ops.check.subjects.rule import Breaches, Broken, RuleList

RULES: RuleList[RawLog] = RuleList()

_LOOKS_LIKE_ONE = re.compile(r"\d+(\.\d+)*\.(json|crc|checkpoint.*|compacted\.json)")


@RULES.rule("Delta Log Entries", quick="log-gap")
def versions_are_contiguous(log: RawLog) -> Breaches:
    """No commit is missing between the first and the last."""
    for before, after in pairwise(sorted(log.commits)):
        if after != before + 1:
            yield Broken(f"versions {before + 1} to {after - 1} are missing from the log", version=after)


@RULES.rule("Metadata Cleanup")
def what_is_gone_is_in_a_checkpoint(log: RawLog) -> Breaches:
    """If the first commits are gone, a checkpoint contains them, and the commit of its version still exists."""
    first = min(log.commits, default=0)
    if first == 0:
        return
    if not log.checkpoints:
        yield f"the log begins with version {first}, and there is no complete checkpoint"
    elif max(log.checkpoints) < first:
        yield f"the newest checkpoint is of version {max(log.checkpoints)}, and the oldest commit of version {first}"


@RULES.rule("Delta Log Entries")
def names_have_twenty_digits(log: RawLog) -> Breaches:
    """A version in a file's name is padded with zeros."""
    for entry in log.entries:
        name = file_name(entry.name)
        if parse(entry.name) is None and _LOOKS_LIKE_ONE.fullmatch(name) and not re.match(r"\d{20}\.", name):
            yield Broken("the version in the name is not padded to 20 digits", entry.name)


@RULES.rule("Checkpoints")
def checkpoints_follow_their_commits(log: RawLog) -> Breaches:
    """No checkpoint is of a version without a commit."""
    for name, version in log.checkpoint_names.items():
        if version > max(log.commits, default=version):
            yield Broken(f"the last commit is of version {max(log.commits)}", name)


@RULES.rule("Version Checksum File")
def checksums_follow_their_commits(log: RawLog) -> Breaches:
    """No checksum is of a version without a commit."""
    for version, entry in log.checksums.items():
        if version > max(log.commits, default=version):
            yield Broken(f"the last commit is of version {max(log.commits)}", entry.name)


@RULES.rule("Log Compaction Files")
def compactions_cover_commits_that_there_were(log: RawLog) -> Breaches:
    """Compactions go from a version to a later one, and not beyond the end of the log."""
    for entry, parsed in log.compactions:
        if parsed.last_version > max(log.commits, default=parsed.last_version):
            yield Broken(
                f"it goes to version {parsed.last_version}, and the last commit is of version {max(log.commits)}", entry.name
            )
    for entry in log.entries:
        numbers = re.fullmatch(r"(\d{20})\.(\d{20})\.compacted\.json", file_name(entry.name))
        if numbers is not None and int(numbers[2]) <= int(numbers[1]):
            yield Broken("it ends before it has begun", entry.name)


# -- _last_checkpoint ------------------------------------------------------------------------------------------------------


def _hint(log: RawLog) -> dict[str, Any]:
    """Return the pointer; empty if there is none, or it cannot be read."""
    try:
        value = json.loads(log.last_checkpoint or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


@RULES.rule("Last Checkpoint File Schema")
def the_pointer_has_its_members(log: RawLog) -> Breaches:
    """Version and size are numbers."""
    if log.last_checkpoint is None:
        return
    hint = _hint(log)
    for name in ("version", "size"):
        if not isinstance(hint.get(name), int):
            yield Broken(f"{name} is {hint.get(name)!r:.40}", LAST_CHECKPOINT)
    for name in ("parts", "sizeInBytes", "numOfAddFiles"):
        if hint.get(name) is not None and not isinstance(hint[name], int):
            yield Broken(f"{name} is {hint[name]!r:.40}", LAST_CHECKPOINT)


@RULES.rule("Last Checkpoint File")
def the_pointer_names_a_checkpoint(log: RawLog) -> Breaches:
    """The pointer names a complete checkpoint with the number of parts that it states."""
    hint = _hint(log)
    version = hint.get("version")
    if not isinstance(version, int):
        return
    checkpoints = log.checkpoints.get(version)
    if not checkpoints:
        yield Broken(f"it names version {version}, which has no complete checkpoint", LAST_CHECKPOINT)
    elif isinstance(hint.get("parts"), int) and hint["parts"] not in {len(each.entries) for each in checkpoints}:
        yield Broken(f"it says {hint['parts']} parts, and the checkpoint has {len(checkpoints[0].entries)}", LAST_CHECKPOINT)


@RULES.rule("JSON checksum")
def the_pointer_has_the_right_checksum(log: RawLog) -> Breaches:
    """The pointer's checksum, if any, is right."""
    hint = _hint(log)
    if hint.get("checksum") is not None and hint["checksum"] != checksum_of_json(hint):
        yield Broken(f"its checksum is {hint['checksum']!r:.40}, expected {checksum_of_json(hint)}", LAST_CHECKPOINT)
