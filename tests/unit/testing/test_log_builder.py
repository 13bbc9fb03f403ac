"""Hand-written logs contain the given actions, and Tahoe reads each of their forms alike."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import DomainMetadata, SetTransaction
from tahoe.testing.log_builder import (
    DAMAGES,
    METADATA,
    PROTOCOL,
    Log,
    add,
    lines,
    live_paths,
    memory_log,
    parquet,
    remove,
    vector,
)


@pytest.fixture
def log() -> Log:
    """Return a log at version 2: two of three files are live, one with a vector; a transaction and a domain."""
    log = memory_log()
    first, second = add("one"), add("two")
    log.begin(first, second, SetTransaction("app", 7))
    log.commit(remove(first), add("three"), DomainMetadata("mine", "{}"))
    log.commit(remove(second), add("two", deletion_vector=vector("v")))
    return log


def test_versions_have_the_replayed_state(log: Log) -> None:
    assert log.version == 2
    assert log.expected() == live_paths(log) == ["three", "two"]
    assert [sorted(path for path, _ in live) for live in log.versions] == [["one", "two"], ["three", "two"], ["three", "two"]]
    assert {key[0] for key in log.removed} == {"one", "two"}
    assert {kind for kind, _ in log.others} == {"txn", "domainMetadata", "protocol", "metaData"}


@pytest.mark.parametrize(
    "write",
    [
        lambda log: [log.classic()],
        lambda log: log.multi_part(3),
        lambda log: log.v2("json"),
        lambda log: log.v2("parquet", sidecars=1),
        lambda log: log.v2("json", sidecars=0),
        lambda log: log.v2("parquet", classic_name=True),
    ],
)
def test_each_form_of_checkpoint_replaces_the_commits_before_it(log: Log, write: Callable[[Log], list[str]]) -> None:
    names = write(log)
    assert all(log.store.head(name) for name in names)
    for version in range(log.version):
        log.store.delete(commit_name(version))
    assert live_paths(log) == log.expected()
    assert sorted(file.path for file in log.files_of_checkpoint(log.version)) == log.expected()
    assert log.state().protocol == PROTOCOL and log.state().metadata == METADATA


def test_a_compaction_has_the_last_action_for_each_file(log: Log) -> None:
    said = [json.loads(line) for line in log.store.get(log.compaction(0, 1)).splitlines()]
    words = {line[kind]["path"]: kind for line in said for kind in line if kind in ("add", "remove")}
    assert words == {"one": "remove", "two": "add", "three": "add"}


def test_a_checksum_and_a_hint_are_right_by_default(log: Log) -> None:
    right = json.loads(log.store.get(log.checksum()))
    assert (right["numFiles"], right["tableSizeBytes"], right["txnId"]) == (2, 200, "txn-2")
    assert json.loads(log.store.get(log.checksum(0)))["txnId"] == "txn-0"
    assert json.loads(log.store.get(log.checksum(numFiles=9)))["numFiles"] == 9
    assert json.loads(log.store.get(log.hint(size=1))) == {"version": 2, "size": 1, "numOfAddFiles": 2}


def test_a_parquet_file_has_a_column_for_each_kind_of_action_in_it() -> None:
    table = pq.read_table(io.BytesIO(parquet([PROTOCOL, add("one")])))
    assert table.column_names == ["add", "protocol"] and table.num_rows == 2
    assert lines([PROTOCOL]).count(b"\n") == 1


@pytest.mark.parametrize("name", DAMAGES)
def test_a_corruption_changes_or_removes_a_file(name: str, log: Log) -> None:
    data = log.store.get(commit_name(0))
    assert DAMAGES[name](data) != data
