"""Which files of the log give a version, and how far a listing is trusted."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.log.files.paths import LAST_CHECKPOINT, commit_name, file_name
from tahoe.log.replay import LogReader
from tahoe.log.segment import LogSegment, checkpoints_in, segment_for
from tahoe.store.log_store import Entry, LogStore
from tahoe.testing.log_builder import Log, add, live_paths, memory_log
from tests.sampling import sampled


def _log(versions: int) -> Log:
    log = memory_log()
    log.begin(add("f0"))
    for version in range(1, versions):
        log.commit(add(f"f{version}"))
    return log


def _names(segment: LogSegment) -> list[str]:
    return [file_name(file.entry.name) for file in segment.tail()]


@dataclass
class Listed:
    """A store whose listings are a function of the true ones; all other calls are unchanged."""

    inner: LogStore
    change: Callable[[list[Entry]], list[Entry]]
    heads: int = 0
    lists: int = 0

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        self.lists += 1
        return self.change(self.inner.list_from(folder, start))

    def pages_from(self, folder: str, start: str = "") -> Iterator[list[Entry]]:
        yield self.list_from(folder, start)

    def head(self, name: str) -> Entry | None:
        self.heads += 1
        return self.inner.head(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_without_a_checkpoint_all_commits_give_the_version() -> None:
    segment = segment_for(_log(3).store)
    assert (segment.version, segment.checkpoint) == (2, None)
    assert _names(segment) == [file_name(commit_name(v)) for v in (0, 1, 2)]


def test_the_newest_checkpoint_not_newer_than_the_version_is_where_replay_begins() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.commit(add("b"))
    log.classic()
    log.commit(add("c"))
    log.commit(add("d"))
    log.classic()
    log.commit(add("e"))
    latest, older = segment_for(log.store), segment_for(log.store, 2)
    assert latest.checkpoint is not None and latest.checkpoint.version == 3
    assert _names(latest) == [file_name(commit_name(4))]
    assert older.checkpoint is not None and older.checkpoint.version == 1
    assert _names(older) == [file_name(commit_name(2))]


def test_the_checkpoints_own_commit_stands_before_the_tail_and_is_not_replayed() -> None:
    log = _log(2)
    log.classic()
    segment = segment_for(log.store)
    assert [entry.name for entry in segment.commits] == [commit_name(1)]
    assert segment.commit() == segment.commits[0]
    assert segment.tail() == ()


def test_compactions_stand_for_missing_commits_alone_and_as_few_of_them_as_can_be() -> None:
    log = _log(12)
    for first, last in ((1, 3), (2, 9), (4, 5), (10, 11), (3, 4)):
        log.compaction(first, last)
    assert [file.last for file in segment_for(log.store).tail() or ()] == list(range(12))
    for version in (3, 5):
        log.store.delete(commit_name(version))
    # One compaction, 2-9, replaces both; 1-3 and 4-5 would be two.
    tail = segment_for(log.store).tail() or ()
    assert [(file.first, file.last) for file in tail] == [(0, 0), (1, 1), (2, 9), (10, 10), (11, 11)]
    assert live_paths(log) == log.expected()
    tail = segment_for(log.store, 8).tail() or ()
    assert [(f.first, f.last) for f in tail] == [(0, 0), (1, 3), (4, 5), (6, 6), (7, 7), (8, 8)]


def test_compactions_that_overlap_and_cannot_be_put_together_are_a_gap() -> None:
    log = _log(8)
    log.compaction(1, 4)
    log.compaction(3, 6)
    for version in (1, 6):
        log.store.delete(commit_name(version))
    with pytest.raises(CorruptTable, match=re.escape(commit_name(1))) as caught:
        log.live()
    assert caught.value.code == "DELTA_VERSIONS_NOT_CONTIGUOUS"


def test_a_commit_that_is_missing_inside_of_a_compaction_is_not_missed() -> None:
    log = _log(6)
    log.compaction(1, 4)
    log.store.delete(commit_name(2))
    assert live_paths(log) == log.expected()


def test_a_multi_part_checkpoint_that_lacks_a_part_is_ignored() -> None:
    log = _log(4)
    names = log.multi_part(3)
    segment = segment_for(log.store)
    assert segment.checkpoint is not None
    assert segment.checkpoint.names == tuple(names)
    log.store.delete(names[1])
    assert segment_for(log.store).checkpoint is None
    assert live_paths(log) == log.expected()


def test_staged_commits_and_strange_names_are_left_alone() -> None:
    log = _log(2)
    staged = "_delta_log/_staged_commits/00000000000000000002.016ae953-37a9-438e-8683-9a9a4a79a395.json"
    for name in (staged, "_delta_log/.00000000000000000002.json.tmp", "_delta_log/notes.txt", "_delta_log/2.json"):
        log.store.put(name, b"{}")
    assert segment_for(log.store).version == 1


def test_the_hint_saves_the_listing_of_older_files() -> None:
    log = _log(30)
    log.classic()
    log.hint()
    seen: list[Entry] = []
    store = Listed(log.store, lambda entries: seen.extend(entries) or entries)
    assert segment_for(store).version == 29
    assert {file_name(entry.name) for entry in seen} <= {f"{29:020d}.checkpoint.parquet", f"{29:020d}.json", "_last_checkpoint"}


@pytest.mark.parametrize("version", [5, 10**9])
def test_a_hint_that_names_a_checkpoint_which_is_not_there_is_only_a_hint(version: int) -> None:
    log = _log(4)
    log.hint(version=version)
    assert live_paths(log) == log.expected()


class TestWhatIsNotThere:
    def test_no_log_is_no_table(self) -> None:
        with pytest.raises(NotFound, match="is not a Delta table") as caught:
            segment_for(memory_log().store)
        assert caught.value.code == "DELTA_TABLE_NOT_FOUND"

    def test_a_log_of_other_files_is_damaged(self) -> None:
        log = memory_log()
        log.store.put("_delta_log/00000000000000000007.crc", b"{}")
        with pytest.raises(CorruptTable) as caught:
            segment_for(log.store)
        assert caught.value.code == "DELTA_LOG_FILE_NOT_FOUND"

    @pytest.mark.parametrize("asked", [3, 99, -1])
    def test_a_version_that_is_not_there_names_those_that_are(self, asked: int) -> None:
        with pytest.raises(NotFound, match="0 to 2") as caught:
            segment_for(_log(3).store, asked)
        assert caught.value.code == "DELTA_VERSION_NOT_FOUND"
        assert (caught.value.facts["earliest"], caught.value.facts["latest"]) == (0, 2)

    def test_a_version_whose_commits_were_cleaned_away_names_those_that_are_left(self) -> None:
        log = _log(6)
        log.classic()
        log.commit(add("g"))
        for version in range(5):
            log.store.delete(commit_name(version))
        with pytest.raises(NotFound, match="5 to 6"):
            segment_for(log.store, 3)

    def test_a_gap_is_damage_and_names_the_commit(self) -> None:
        log = _log(5)
        log.store.delete(commit_name(2))
        with pytest.raises(CorruptTable, match=commit_name(2)) as caught:
            segment_for(log.store)
        assert caught.value.code == "DELTA_VERSIONS_NOT_CONTIGUOUS"
        assert segment_for(log.store, 1).version == 1

    def test_a_log_that_begins_late_without_a_checkpoint_is_damage(self) -> None:
        log = _log(5)
        log.store.delete(commit_name(0))
        with pytest.raises(CorruptTable, match=r"00000000000000000001\.json") as caught:
            segment_for(log.store)
        assert caught.value.code == "DELTA_TRUNCATED_TRANSACTION_LOG"

    def test_a_checkpoint_without_any_commit_from_it_on_is_damage(self) -> None:
        log = _log(2)
        log.classic()
        log.store.delete(commit_name(0))
        log.store.delete(commit_name(1))
        with pytest.raises(CorruptTable) as caught:
            segment_for(log.store)
        assert caught.value.code == "DELTA_LOG_FILE_NOT_FOUND"


class TestListingsThatLag:
    def test_commits_that_the_listing_lacks_at_its_end_are_found_by_name(self) -> None:
        log = _log(8)
        lagging = Listed(log.store, lambda entries: entries[:-3])
        assert segment_for(lagging).version == 7

    def test_commits_that_the_listing_lacks_in_the_middle_are_found_by_name(self) -> None:
        log = _log(8)
        lagging = Listed(log.store, lambda entries: [e for i, e in enumerate(entries) if i not in (2, 3, 6)])
        segment = segment_for(lagging)
        assert [file.first for file in segment.tail()] == list(range(8))

    def test_an_empty_listing_of_a_new_table_is_not_believed(self) -> None:
        log = _log(3)
        assert segment_for(Listed(log.store, lambda entries: [])).version == 2

    def test_a_version_asked_for_beyond_the_listing_is_found(self) -> None:
        log = _log(6)
        assert segment_for(Listed(log.store, lambda entries: entries[:2]), 4).version == 4

    def test_the_newest_version_costs_one_more_request(self) -> None:
        store = Listed(_log(6).store, lambda entries: entries)
        segment_for(store)
        assert (store.lists, store.heads) == (1, 1)
        segment_for(store, 3)
        assert (store.lists, store.heads) == (2, 1)

    @pytest.mark.parametrize("seed", sampled(range(120), 4))
    def test_no_listing_ever_gives_a_wrong_snapshot(self, seed: int) -> None:
        chance = random.Random(seed)
        log = _log(2)
        for _ in range(chance.randrange(1, 8)):
            log.commit(add(f"f{log.version + 1}"))
            if chance.random() < 0.3:
                log.classic()
            if chance.random() < 0.3:
                log.hint()
            if chance.random() < 0.2 and log.version > 2:
                log.compaction(1, log.version - 1)
        hidden = {name for name in (e.name for e in log.store.list_from("_delta_log")) if chance.random() < 0.3}

        def lag(entries: list[Entry]) -> list[Entry]:
            shown = [e for e in entries if e.name not in hidden or e.name == LAST_CHECKPOINT]
            return shown + shown[:1] if chance.random() < 0.2 else shown

        lagging = Listed(log.store, lag)
        segment = segment_for(lagging)
        assert segment.version == log.version
        assert sorted(LogReader(log.store, segment).files().column("path").to_pylist()) == log.expected()


def test_checkpoints_of_a_listing_are_found_by_version() -> None:
    log = _log(2)
    log.classic()
    log.v2("json")
    log.multi_part(2)
    actual = checkpoints_in(log.store.list_from("_delta_log"))
    assert {version: sorted(c.kind for c in each) for version, each in actual.items()} == {1: ["classic", "multi-part", "uuid"]}
