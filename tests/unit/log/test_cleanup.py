"""Log cleanup deletes files that are older than the retention and that no later version needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import CorruptTable, TahoeWarning
from tahoe.log.cleanup import clean_up_log, expired
from tahoe.log.files.paths import checkpoint_name, checksum_name, commit_name, parse
from tahoe.protocol.config import TableConfig
from tahoe.store.log_store import Entry
from tahoe.store.stream_records import record_stream, streams_of
from tahoe.testing.log_builder import METADATA, PROTOCOL, Log, add, live_paths, memory_log, remove

DAY_MS = 86_400_000
LATER = SYSTEM_CLOCK.now_ms() + 40 * DAY_MS


def listed(*names: str, modified_ms: int = 1) -> list[tuple[Entry, object]]:
    return [(Entry(name, 1, modified_ms), parse(name)) for name in names]


@pytest.fixture
def log() -> Log:
    """Versions 0 to 4, with V2 checkpoints of versions 1 and 3."""
    log = memory_log()
    first = add("one")
    log.begin(first)
    log.commit(add("two"))
    log.v2("json", sidecars=1)
    log.commit(remove(first))
    log.commit(add("three"))
    log.checksum()
    log.commit(add("four"))
    return log


def config(**properties: str) -> TableConfig:
    return TableConfig(PROTOCOL, replace(METADATA, configuration=properties), "memory://t")


def test_commits_before_the_newest_expired_checkpoint_are_deleted_and_it_stays() -> None:
    names = [commit_name(version) for version in range(5)]
    remaining = [checkpoint_name(2), checkpoint_name(4)]
    compaction = f"_delta_log/{0:020d}.{1:020d}.compacted.json"
    parsed = [
        *listed(*names[:3], checkpoint_name(1), checksum_name(1), compaction),
        *listed(*names[3:], *remaining, modified_ms=100),
    ]
    kept_version, going = expired(parsed, {1, 2, 4}, 50)
    assert kept_version == 2
    assert going[:2] == names[:2], "commits go first, as long as checkpoints are there"
    assert set(going[2:]) == {checkpoint_name(1), checksum_name(1), compaction}
    assert expired(parsed, {4}, 50) == (None, []), "without a checkpoint old enough nothing goes"
    assert expired(parsed, {1, 2, 4}, 0) == (None, []), "nor while no commit is old enough"


def test_the_table_is_read_as_before_and_sidecars_go_with_their_checkpoints(log: Log) -> None:
    old_sidecars = [entry.name for entry in log.store.list_from("_delta_log/_sidecars")]
    live = live_paths(log)
    log.classic()
    gone = clean_up_log(log.store, config(), LATER)
    assert {commit_name(0), commit_name(3), checksum_name(3), *old_sidecars} <= set(gone)
    assert all(log.store.head(name) is None for name in gone) and log.store.head(commit_name(4))
    assert live_paths(log) == live == log.expected()


def test_a_stream_that_lags_is_reported_by_its_checkpoint_before_its_commits_go(log: Log) -> None:
    log.classic()
    record_stream(log.store, "file:/late/sources/0", 2)
    record_stream(log.store, "file:/newest/sources/0", 5)
    with pytest.warns(
        TahoeWarning, match="loses its commits before version 4, and the stream with the checkpoint file:/late"
    ) as raised:
        clean_up_log(log.store, config(), LATER)
    assert len(raised) == 1 and len(list(streams_of(log.store))) == 2
    assert live_paths(log) == log.expected()


def test_nothing_goes_within_the_retention(log: Log) -> None:
    log.classic()
    assert clean_up_log(log.store, config(), SYSTEM_CLOCK.now_ms()) == []
    assert clean_up_log(log.store, config(**{"delta.logRetentionDuration": "interval 60 days"}), LATER) == []


def test_commits_before_the_protected_version_are_deleted_together_or_not_at_all(log: Log) -> None:
    log.classic()
    protocol = replace(PROTOCOL, writer_features=(PROTOCOL.writer_features or frozenset()) | {"checkpointProtection"})

    def protected(before: int) -> TableConfig:
        properties = {"delta.requireCheckpointProtectionBeforeVersion": str(before)}
        return TableConfig(protocol, replace(METADATA, configuration=properties), "memory://t")

    assert clean_up_log(log.store, protected(5), LATER) == [], "version 4 cannot go, so neither can the others"
    gone = clean_up_log(log.store, protected(4), LATER)
    assert {commit_name(version) for version in range(4)} <= set(gone)
    assert live_paths(log) == log.expected()


def test_a_damaged_sidecar_of_the_checkpoint_that_stays_keeps_the_commits(log: Log) -> None:
    log.v2("parquet", sidecars=1)
    (sidecar,) = (entry.name for entry in log.store.list_from("_delta_log/_sidecars"))
    body = log.store.get(sidecar)
    log.store.put(sidecar, body[:200] + b"\0\0\0\0" + body[204:])
    with pytest.raises(CorruptTable, match="sidecars"):
        clean_up_log(log.store, config(), LATER)
    assert log.store.head(commit_name(0)), "the commits are all that is left of the table"


def test_a_sidecar_that_is_younger_than_a_day_may_belong_to_a_checkpoint_that_is_being_written(log: Log) -> None:
    log.classic()
    short = config(**{"delta.logRetentionDuration": "interval 0 days"})
    written_ms = min(sidecar.modified_ms for sidecar in log.store.list_from("_delta_log/_sidecars"))
    tomorrow = (written_ms // DAY_MS + 1) * DAY_MS
    gone = clean_up_log(log.store, short, tomorrow)
    assert commit_name(0) in gone and log.store.list_from("_delta_log/_sidecars")
