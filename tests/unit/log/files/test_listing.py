"""A listing of the log by kinds, and the requests by name for files that it may lack."""

from __future__ import annotations

import pytest

from tahoe.log.files.listing import Listing, checkpoints_in, fill_gaps, probe_upward
from tahoe.log.files.paths import commit_name
from tahoe.store.log_store import Entry
from tahoe.testing.log_builder import Log, add, memory_log


@pytest.fixture
def log() -> Log:
    """Versions 0 to 3 with a classic, a multi-part and a V2 checkpoint of version 2, a compaction and a checksum."""
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    log.commit(add("c"))
    log.v2("json")
    log.multi_part(2)
    log.classic()
    log.compaction(0, 1)
    log.checksum()
    log.store.put("_delta_log/what.is.this", b"")
    log.commit(add("d"))
    return log


def test_a_listing_is_sorted_into_kinds_and_unknown_names_are_passed_over(log: Log) -> None:
    listing = Listing.read(log.store, None)
    assert sorted(listing.commits) == [0, 1, 2, 3] and listing.newest() == 3
    assert list(listing.complete_checkpoints) == [2] and list(listing.checksums) == [2]
    assert [(parsed.version, parsed.last_version) for parsed, _ in listing.compactions] == [(0, 1)]
    assert not listing.is_empty
    assert sorted(Listing.read(log.store, 2).commits) == [2, 3]


def test_of_one_version_the_classic_checkpoint_comes_first_and_others_can_be_left_out(log: Log) -> None:
    listing = Listing.read(log.store, None)
    kinds = [checkpoint.kind for checkpoint in listing.checkpoints(None, ())]
    assert kinds == ["classic", "uuid", "multi-part"]
    (first, *_) = listing.checkpoints(3, ())
    assert [checkpoint.kind for checkpoint in listing.checkpoints(3, first.names)] == ["uuid", "multi-part"]
    assert list(listing.checkpoints(1, ())) == []


def test_a_multi_part_checkpoint_counts_when_all_parts_are_there_in_order() -> None:
    names = [f"_delta_log/{7:020d}.checkpoint.{part:010d}.{3:010d}.parquet" for part in (3, 1, 2)]
    entries = [Entry(name, 1, 1) for name in names]
    assert checkpoints_in(entries[:2]) == {}
    [checkpoint] = checkpoints_in(entries)[7]
    assert checkpoint.names == (names[1], names[2], names[0])


def test_commits_that_a_listing_lacks_are_asked_for_by_name(log: Log) -> None:
    listing = Listing.read(log.store, None)
    for version in (1, 3):
        del listing.commits[version]
    assert probe_upward(log.store, listing, 2, limit=2) == 2
    assert probe_upward(log.store, listing, 2) == 3 and 3 in listing.commits
    fill_gaps(log.store, listing, [1])
    assert sorted(listing.commits) == [0, 1, 2, 3]


def test_filling_stops_at_the_first_that_is_not_there(log: Log) -> None:
    listing = Listing.read(log.store, None)
    listing.commits.clear()
    log.store.delete(commit_name(1))
    fill_gaps(log.store, listing, [0, 1, 2])
    assert sorted(listing.commits) == [0]


def test_an_empty_log_has_no_newest_version() -> None:
    listing = Listing.read(memory_log().store, None)
    assert listing.newest() is None and listing.is_empty
