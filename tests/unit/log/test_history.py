"""Which version was when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.log.history import commit_times, history, in_commit_timestamps_from, states_its_time, version_at
from tahoe.protocol.actions import CommitInfo
from tahoe.protocol.config import TableConfig
from tahoe.store.log_store import Entry
from tahoe.testing.faulty_store import WrappedStore
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
        said = {"operation": "WRITE"} | ({} if time is None else {"inCommitTimestamp": time})
        first = (PROTOCOL, METADATA) if version == 0 else ()
        log.commit(CommitInfo(said), *first, add(f"f{version}"), info=False)
    return log


def config(properties: dict[str, str] | None = None) -> TableConfig:
    features = frozenset({"inCommitTimestamp"}) if properties else frozenset()
    protocol = replace(PROTOCOL, writer_features=(PROTOCOL.writer_features or frozenset()) | features)
    return TableConfig(protocol, replace(METADATA, configuration=properties or {}), "memory://t")


def at(log: Log, *times: int) -> At:
    store = At(log.store)
    store.times = times
    return store


def test_times_strictly_increase_also_where_a_clock_went_back() -> None:
    found = commit_times(at(logged(None, None, None), 1000, 900, 2000), config())
    assert [(time.version, time.timestamp_ms) for time in found] == [(0, 1000), (1, 1001), (2, 2000)]


def test_in_commit_timestamps_count_from_the_version_that_enabled_them() -> None:
    store = at(logged(None, 7, 5000), 1000, 2000, 9000)
    assert [time.timestamp_ms for time in commit_times(store, config(FROM_2))] == [1000, 2000, 5000]
    assert [time.timestamp_ms for time in commit_times(at(logged(10, 20), 1, 2), config(ON))] == [10, 20]
    assert (in_commit_timestamps_from(config()), in_commit_timestamps_from(config(ON))) == (None, 0)
    assert in_commit_timestamps_from(config(FROM_2)) == 2


def test_a_commit_without_the_time_that_it_should_have_is_damage() -> None:
    with pytest.raises(CorruptTable):
        commit_times(at(logged(10, None), 1, 2), config(ON))


def test_the_version_at_a_time_is_the_newest_that_was_there() -> None:
    store = at(logged(None, None, None), 1000, 2000, 3000)
    assert [version_at(store, config(), time) for time in (1000, 1999, 2000, 3000)] == [0, 0, 1, 2]
    for time, code in ((999, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"), (3001, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT")):
        with pytest.raises(NotFound) as caught:
            version_at(store, config(), time)
        assert caught.value.code == code


def test_a_commit_states_its_time_where_it_begins_with_it() -> None:
    told = CommitInfo({"inCommitTimestamp": 5})
    assert states_its_time([told, PROTOCOL])
    assert not states_its_time([PROTOCOL, told]) and not states_its_time([CommitInfo({})]) and not states_its_time([])


def test_the_newest_commit_comes_first_and_no_more_than_asked_for() -> None:
    log = logged(None, None, None)
    rows = list(history(log.store, config(), 2))
    assert [(row["version"], row["operation"]) for row in rows] == [(2, "WRITE"), (1, "WRITE")]
    assert len(list(history(log.store, config()))) == 3
