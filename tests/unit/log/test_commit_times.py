"""The times of commits, and the search for a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.log.commit_times import CommitTimes, in_commit_timestamps_from, states_its_time
from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import CommitInfo
from tahoe.protocol.config import TableConfig
from tahoe.store.log_store import Entry
from tahoe.testing.faulty_store import TracingStore, WrappedStore
from tahoe.testing.log_builder import METADATA, PROTOCOL, Log, add, memory_log

ON = {"delta.enableInCommitTimestamps": "true"}
FROM_2 = {**ON, "delta.inCommitTimestampEnablementVersion": "2", "delta.inCommitTimestampEnablementTimestamp": "5000"}


class At(WrappedStore):
    """Lists the log's files with these times, in their order."""

    times: tuple[int, ...] = ()

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        return [
            Entry(entry.name, entry.size, time) for entry, time in zip(super().list_from(folder, start), self.times, strict=True)
        ]


def logged(*in_commit: int | None) -> Log:
    log = memory_log()
    for version, time in enumerate(in_commit):
        values = {"operation": "WRITE"} | ({} if time is None else {"inCommitTimestamp": time})
        first = (PROTOCOL, METADATA) if version == 0 else ()
        log.commit(CommitInfo(values), *first, add(f"f{version}"), info=False)
    return log


def config(properties: dict[str, str] | None = None) -> TableConfig:
    features = frozenset({"inCommitTimestamp"}) if properties else frozenset()
    protocol = replace(PROTOCOL, writer_features=(PROTOCOL.writer_features or frozenset()) | features)
    return TableConfig(protocol, replace(METADATA, configuration=properties or {}), "memory://t")


def modified_at(*times: int) -> CommitTimes:
    store = At(logged(*[None] * len(times)).store)
    store.times = times
    return CommitTimes(store, config(), len(times) - 1)


def stated(*times: int | None) -> CommitTimes:
    return CommitTimes(logged(*times).store, config(ON), len(times) - 1)


def test_modification_times_increase_also_where_a_clock_went_back() -> None:
    assert modified_at(1000, 900, 2000).between(0, 2) == {0: 1000, 1: 1001, 2: 2000}


def test_in_commit_timestamps_count_from_the_version_that_enabled_them() -> None:
    store = At(logged(None, 7, 5000).store)
    store.times = (1000, 2000, 9000)
    assert CommitTimes(store, config(FROM_2), 2).between(0, 2) == {0: 1000, 1: 2000, 2: 5000}
    assert stated(10, 20).between(0, 1) == {0: 10, 1: 20}
    assert stated(10, 20).between(1, 1) == {1: 20}
    assert (in_commit_timestamps_from(config()), in_commit_timestamps_from(config(ON))) == (None, 0)
    assert in_commit_timestamps_from(config(FROM_2)) == 2


def test_a_copied_table_is_searched_by_its_in_commit_timestamps() -> None:
    store = At(logged(None, 7, 5000, 6000).store)
    store.times = (90_000, 90_001, 90_002, 90_003)  # the time of the copy
    times = CommitTimes(store, config(FROM_2), 3)
    assert [times.version_at(time) for time in (5000, 5999, 6000)] == [2, 2, 3]
    assert times.first_version_from(5001) == 3


def test_a_commit_without_its_required_timestamp_raises() -> None:
    with pytest.raises(CorruptTable):
        stated(10, None).between(0, 1)
    with pytest.raises(CorruptTable):
        stated(10, None).version_at(15)


@pytest.mark.parametrize("times", [modified_at(1000, 2000, 3000), stated(1000, 2000, 3000)], ids=["modified", "stated"])
def test_the_version_at_a_time_is_the_newest_at_that_time(times: CommitTimes) -> None:
    assert [times.version_at(time) for time in (1000, 1999, 2000, 3000)] == [0, 0, 1, 2]
    assert [times.first_version_from(time) for time in (0, 1000, 1001, 3000)] == [0, 0, 1, 2]
    earliest = times.earliest()
    assert earliest is not None and (earliest.version, earliest.timestamp_ms) == (0, 1000)
    for time, code in ((999, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"), (3001, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT")):
        with pytest.raises(NotFound) as caught:
            times.version_at(time)
        assert caught.value.code == code
    with pytest.raises(NotFound, match="version 2, is from 1970-01-01 00:00:03"):
        times.first_version_from(3001)


def test_a_time_is_found_by_a_few_reads_in_a_long_log() -> None:
    log = logged(*range(0, 20_000, 20))
    traced = TracingStore(log.store)
    times = CommitTimes(traced, config(ON), 999)
    assert times.version_at(12_345) == 617
    assert len(traced.calls) <= 64 * 2, "two rounds of 64 commits"
    assert {call.method for call in traced.calls} == {"get"}
    for time in range(0, 19_980, 777):
        assert CommitTimes(log.store, config(ON), 999).version_at(time) == time // 20
        assert CommitTimes(log.store, config(ON), 999).first_version_from(time) == -(-time // 20)


def test_the_search_skips_commits_that_log_cleanup_deleted() -> None:
    log = logged(*range(0, 2_000, 20))
    for version in range(70):
        log.store.delete(commit_name(version))
    times = CommitTimes(log.store, config(ON), 99)
    earliest = times.earliest()
    assert earliest is not None and (earliest.version, earliest.timestamp_ms) == (70, 1400)
    assert (times.version_at(1401), times.first_version_from(5)) == (70, 70)
    assert list(times.between(0, 99)) == list(range(70, 100))
    with pytest.raises(NotFound, match=r"the earliest in its log is from 1970-01-01 00:00:01\.400"):
        times.version_at(1399)


def test_a_commit_states_its_time_where_it_begins_with_it() -> None:
    info = CommitInfo({"inCommitTimestamp": 5})
    assert states_its_time([info, PROTOCOL])
    assert not states_its_time([PROTOCOL, info]) and not states_its_time([CommitInfo({})]) and not states_its_time([])
