"""A handle remembers the versions it has read: a log that lost versions, or has others in their place, raises an error."""

from __future__ import annotations

import logging
import re
from dataclasses import replace

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.log.files.paths import LOG_FOLDER, checksum_name, commit_name
from tahoe.protocol.actions import CommitInfo
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.testing.log_builder import METADATA, PROTOCOL, add, memory_log, remove


def _delete_log(store: LogStore) -> None:
    for entry in store.list_from(LOG_FOLDER, ""):
        store.delete(entry.name)


def test_a_handle_does_not_go_back_to_an_older_version_without_a_word() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    seen = Snapshot.at(log.store)
    log.store.delete(commit_name(1))
    with pytest.raises(CorruptTable, match="version 1 was read here before.*ends with version 0.*" + re.escape(commit_name(1))):
        seen.refreshed()
    assert Snapshot.at(log.store).version == 0


@pytest.mark.parametrize("more", [0, 1])
def test_another_commit_in_the_place_of_one_that_was_read_is_reported(more: int) -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    seen = Snapshot.at(log.store)
    log.store.put(commit_name(1), log.store.get(commit_name(1)).replace(b"txn-1", b"a later one"))
    for _ in range(more):
        log.commit(add("c"))
    with pytest.raises(CorruptTable, match="a later one in place of txn-1"):
        seen.refreshed()


def test_the_same_commit_written_again_is_the_same() -> None:
    log = memory_log()
    log.begin(add("a"))
    seen = Snapshot.at(log.store)
    data = log.store.get(commit_name(0))
    log.store.put(commit_name(0), data + b"\n")
    assert seen.refreshed().version == 0
    log.commit(add("b"))
    assert seen.refreshed().version == 1


def test_a_handle_whose_commit_was_cleaned_away_continues() -> None:
    log = memory_log()
    log.begin(add("a"))
    seen = Snapshot.at(log.store)
    log.commit(add("b"))
    log.classic()
    log.commit(add("c"))
    log.store.delete(commit_name(0))
    assert seen.refreshed().version == 2


def test_a_table_made_again_is_read_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    seen = Snapshot.at(log.store)
    _delete_log(log.store)
    again = replace(METADATA, id="another table")
    other = memory_log()
    other.store = log.store
    other.commit(PROTOCOL, again, add("c"))
    with caplog.at_level(logging.WARNING):
        assert seen.refreshed().version == 0
    assert "created again" in caplog.text and "another table" in caplog.text


def test_commits_that_follow_are_compared_with_their_places_too() -> None:
    log = memory_log()
    log.begin(add("a"))
    seen = Snapshot.at(log.store)
    log.commit(CommitInfo({"readVersion": 2}), add("b"), info=False)
    with pytest.raises(CorruptTable, match="read version 2"):
        seen.refreshed()


@pytest.mark.parametrize("older", range(9, 13))
def test_swapped_commits_of_writers_without_seals_are_reported_by_the_newest_checksum(older: int) -> None:
    """Adds and removes depend on each other here, so that a swap gives other live files."""
    log = memory_log()
    log.begin(add("f0"))
    for version in range(1, 14):
        log.commit(
            CommitInfo({"txnId": f"txn-{version}", "readVersion": version - 1}),
            remove(add(f"f{version - 1}")),
            add(f"f{version}"),
            info=False,
        )
        log.checksum()
    assert [file.path for file in log.live()] == ["f13"]
    first, other = log.store.get(commit_name(older)), log.store.get(commit_name(13))
    log.store.put(commit_name(older), other)
    log.store.put(commit_name(13), first)
    with pytest.raises(CorruptTable, match=re.escape(commit_name(older)) + ".*read version 12|" + re.escape(checksum_name(13))):
        Snapshot.at(log.store).files()
