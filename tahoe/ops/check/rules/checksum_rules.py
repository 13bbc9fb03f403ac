"""Rules of the checksum of a version."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tahoe.ops.check.rules.checkpoint_rules import differing
from tahoe.ops.check.subjects.replayed_log import LogState, ReplayedLog
from tahoe.ops.check.subjects.rule import Breaches, Broken, RuleList
from tahoe.protocol.features import Feature

RULES: RuleList[ChecksumFile] = RuleList()
FILE_RULES: RuleList[ChecksumOfFiles] = RuleList()

_REQUIRED = {"tableSizeBytes": int, "numFiles": int, "numMetadata": int, "numProtocol": int, "metadata": dict, "protocol": dict}
_DELETED = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2**31 - 1)


@dataclass(frozen=True)
class ChecksumFile:
    """A checksum's bytes, the `commitInfo` of its version, and the state after the commits."""

    data: bytes
    info: Mapping[str, Any]
    state: LogState

    @cached_property
    def value(self) -> dict[str, Any]:
        """The checksum's JSON; empty if it is not an object."""
        try:
            value = json.loads(self.data)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True)
class ChecksumOfFiles(ChecksumFile):
    """The same, for rules that need the live files."""

    state: ReplayedLog

    @cached_property
    def sizes(self) -> list[int]:
        """The sizes of all live files."""
        return [value["size"] for value in self.state.adds.values() if isinstance(value.get("size"), int)]

    @cached_property
    def deleted(self) -> list[int]:
        """The number of rows that each live file's vector removes, 0 without one."""
        vectors = [value.get("deletionVector") for value in self.state.adds.values()]
        return [vector.get("cardinality") or 0 if isinstance(vector, dict) else 0 for vector in vectors]


@RULES.rule("Version Checksum File Schema")
def checksums_have_their_members(checksum: ChecksumFile) -> Breaches:
    """A checksum is one JSON object with counts, protocol and metadata."""
    if not checksum.value:
        yield f"it is no JSON object: {checksum.data[:60].decode(errors='replace')}"
        return
    for name, kind in _REQUIRED.items():
        if not isinstance(checksum.value.get(name), kind):
            yield f"{name} is {checksum.value.get(name)!r:.40}"
    for name in ("numMetadata", "numProtocol"):
        if checksum.value.get(name) not in (1, None):
            yield f"{name} is {checksum.value[name]}, expected 1"


@RULES.rule("State Validation", quick="checksum")
def checksums_count_the_files(checksum: ChecksumFile) -> Breaches:
    """The counts of files and bytes are right."""
    for name, counted in (("numFiles", checksum.state.totals.files), ("tableSizeBytes", checksum.state.totals.bytes)):
        if isinstance(checksum.value.get(name), int) and checksum.value[name] != counted:
            yield f"{name} is {checksum.value[name]}, the commits give {counted}"


@RULES.rule("State Validation", quick="checksum")
def checksums_count_the_vectors(checksum: ChecksumFile) -> Breaches:
    """The counts of vectors, and of the rows that they remove, are right."""
    totals = checksum.state.totals
    for name, counted in (("numDeletionVectorsOpt", totals.vectors), ("numDeletedRecordsOpt", totals.deleted)):
        if checksum.value.get(name) is not None and checksum.value[name] != counted:
            yield f"{name} is {checksum.value[name]}, the commits give {counted}"


@RULES.rule("State Validation", quick="checksum")
def checksums_repeat_the_settings(checksum: ChecksumFile) -> Breaches:
    """Protocol and metadata are those of the commits."""
    yield from checksum.state.differences(checksum.value.get("protocol"), checksum.value.get("metadata"))


@RULES.rule("Version Checksum File Schema")
def checksums_have_the_time(checksum: ChecksumFile) -> Breaches:
    """`inCommitTimestampOpt` exists if and only if commits record their timestamps, and is the commit's own."""
    settings = checksum.state.settings
    if settings is None or not checksum.value:
        return
    active = settings.is_active(Feature.IN_COMMIT_TIMESTAMP, "delta.enableInCommitTimestamps")
    stated = checksum.value.get("inCommitTimestampOpt")
    if active != (stated is not None):
        yield f"in-commit timestamps are {'on' if active else 'off'}, and inCommitTimestampOpt is {stated}"
    elif active and stated != checksum.state.timestamp:
        yield f"inCommitTimestampOpt is {stated}, the commit says {checksum.state.timestamp}"


@RULES.rule("Version Checksum File Schema", quick="checksum")
def checksums_have_the_commits_id(checksum: ChecksumFile) -> Breaches:
    """`txnId` is the commit's, if both have one."""
    stated, expected = checksum.value.get("txnId"), checksum.info.get("txnId")
    if None not in (stated, expected) and stated != expected:
        yield f"txnId is {stated}, the commit says {expected}"


@RULES.rule("Version Checksum File Schema", quick="checksum", strict=False)
def checksums_repeat_the_commits_time(checksum: ChecksumFile) -> Breaches:
    """`inCommitTimestampOpt` is the commit's, if both have one."""
    stated, expected = checksum.value.get("inCommitTimestampOpt"), checksum.info.get("inCommitTimestamp")
    if None not in (stated, expected) and stated != expected:
        yield f"inCommitTimestampOpt is {stated}, the commit says {expected}"


@RULES.rule("State Validation", quick="checksum")
def checksums_hold_the_transactions(checksum: ChecksumFile) -> Breaches:
    """If the checksum lists transactions, each is at its newest version. (A checkpoint may have dropped old ones.)"""
    listed, state = checksum.value.get("setTransactions"), checksum.state
    if not isinstance(listed, list):
        return
    stated = {str(each.get("appId")): each.get("version") for each in listed}
    keeps_all = state.settings is not None and not state.settings.property("delta.setTransactionRetentionDuration")
    for application in sorted(stated.keys() | (state.transactions.keys() if keeps_all and state.complete else set())):
        expected = state.transactions.get(application, {}).get("version")
        if stated.get(application) != expected and (expected is not None or state.complete):
            yield f"it says transaction {stated.get(application)} of '{application}', the commits {expected}"


@RULES.rule("State Validation", quick="checksum")
def checksums_hold_the_domains(checksum: ChecksumFile) -> Breaches:
    """If the checksum lists domains, they are all that were not removed."""
    listed = checksum.value.get("domainMetadata")
    if not isinstance(listed, list) or not checksum.state.known:
        return
    stated = {str(each.get("domain")): each for each in listed}
    for domain in sorted(stated.keys() | checksum.state.domains.keys()):
        actual, expected = stated.get(domain, {}), checksum.state.domains.get(domain, {})
        if actual.get("removed") or actual.get("configuration") != expected.get("configuration"):
            yield f"it says otherwise of the domain '{domain}' than the commits"


@FILE_RULES.rule("State Validation")
def checksums_hold_the_files(checksum: ChecksumOfFiles) -> Breaches:
    """If the checksum lists files, they are all live files, as in the commits."""
    listed = checksum.value.get("allFiles")
    if not isinstance(listed, list):
        return
    stated = {checksum.state.key(each): each for each in listed}
    for key in sorted(stated.keys() ^ checksum.state.adds.keys())[:5]:
        yield Broken("the checksum lists the file and it is not live, or the other way round", key[0])
    for key in stated.keys() & checksum.state.adds.keys():
        names = differing(checksum.state.adds[key], stated[key])
        if names:
            yield Broken(f"the checksum says otherwise of {', '.join(names)}", key[0])


@FILE_RULES.rule("File Size Histogram Schema")
def size_histograms_are_right(checksum: ChecksumOfFiles) -> Breaches:
    """Bins begin at 0 and are sorted; files and bytes of each are counted correctly."""
    histogram = checksum.value.get("fileSizeHistogram")
    if not isinstance(histogram, dict):
        return
    bounds, counts, sums = (histogram.get(name) for name in ("sortedBinBoundaries", "fileCounts", "totalBytes"))
    if not (isinstance(bounds, list) and isinstance(counts, list) and isinstance(sums, list)):
        yield "it has no sortedBinBoundaries, fileCounts or totalBytes"
        return
    if bounds[:1] != [0] or bounds != sorted(set(bounds)) or not len(bounds) == len(counts) == len(sums):
        yield f"its bins begin at {bounds[:1]}, are not sorted, or its lists are of lengths {len(bounds)}, {len(counts)}, {len(sums)}"
        return
    files, bytes_ = [0] * len(bounds), [0] * len(bounds)
    for size in checksum.sizes:
        files[bisect_right(bounds, size) - 1] += 1
        bytes_[bisect_right(bounds, size) - 1] += size
    if (files, bytes_) != (counts, sums):
        yield "its counts are not those of the live files"


@FILE_RULES.rule("Deleted Record Counts Histogram Schema")
def deletion_histograms_are_right(checksum: ChecksumOfFiles) -> Breaches:
    """There are ten bins, by the number of deleted rows per file."""
    histogram = checksum.value.get("deletedRecordCountsHistogramOpt")
    if not isinstance(histogram, dict):
        return
    counted = [0] * len(_DELETED)
    for deleted in checksum.deleted:
        counted[bisect_right(_DELETED, deleted) - 1] += 1
    if histogram.get("deletedRecordCounts") != counted:
        yield f"its counts are {histogram.get('deletedRecordCounts')}, those of the live files are {counted}"
