"""A compaction that says otherwise than its commits is a finding: Tahoe does not read it while they are there, other readers do."""

from __future__ import annotations

import pytest

from tahoe import Table
from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import DomainMetadata, SetTransaction
from tahoe.testing.log_builder import METADATA, Log, add, memory_log, remove

pytestmark = pytest.mark.damages_tables

CHANGES = {
    "a path": (b'"path":"two"', b'"path":"twp"'),
    "a partition value": (b'"part":"a"', b'"part":"c"'),
    "a bound": (b'\\"id\\":1,', b'\\"id\\":7,'),
    "a transaction's version": (b'"version":3', b'"version":4'),
    "the metadata": (b'"description":"new"', b'"description":"nev"'),
    "its JSON": (b'{"add"', b'{"add'),
}


def _log() -> tuple[Log, str]:
    log = memory_log()
    log.begin(add("one"))
    log.commit(add("two", low=1, high=5), SetTransaction("stream", 3))
    log.commit(remove(add("one")), add("three"), DomainMetadata("gone", "{}", True))
    log.commit(type(METADATA)(**{**vars(METADATA), "description": "new"}))
    return log, log.compaction(1, 3)


def _findings(log: Log) -> list[tuple[str, str | None]]:
    return [(each.code, each.file) for each in Table(log.store.url, store=log.store).check() if each.code == "compaction"]


def test_a_correct_compaction_needs_no_tombstones_and_is_not_reported() -> None:
    log, name = _log()
    assert _findings(log) == []
    lines = log.store.get(name).splitlines(keepends=True)
    log.store.put(name, b"".join(line for line in lines if b'"remove"' not in line))
    assert _findings(log) == []


@pytest.mark.parametrize("case", CHANGES)
def test_another_word_in_a_compaction_is_a_finding(case: str) -> None:
    log, name = _log()
    right, wrong = CHANGES[case]
    whole = log.store.get(name)
    assert right in whole, whole
    log.store.put(name, whole.replace(right, wrong))
    assert _findings(log) == [("compaction", name)]


def test_a_lost_line_is_a_finding() -> None:
    log, name = _log()
    lines = log.store.get(name).splitlines(keepends=True)
    log.store.put(name, b"".join(line for line in lines if b"three" not in line))
    assert _findings(log) == [("compaction", name)]


def test_where_commits_are_missing_or_damaged_nothing_is_compared() -> None:
    log, name = _log()
    log.store.put(name, log.store.get(name).replace(b"two", b"twp"))
    log.store.put(commit_name(2), b"{")
    assert _findings(log) == []
    log.store.delete(commit_name(2))
    assert _findings(log) == []
