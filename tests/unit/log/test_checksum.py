"""The version checksum: computed from the previous one and the commit, equal to the totals of the files."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.log.checksum import parse_checksum, read_checksum
from tahoe.log.checksum_writer import checksum_of, write_checksum, write_checksum_after
from tahoe.log.files.commits import parse_commit
from tahoe.log.files.paths import checksum_name, commit_name
from tahoe.log.replay import LogReader, advance_state
from tahoe.log.segment import segment_for
from tahoe.protocol.actions import Action, CommitInfo, DomainMetadata, Protocol, RemoveFile, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.testing.log_builder import METADATA, PROTOCOL, Log, add, memory_log, remove, vector

WITH_VECTORS = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors", "domainMetadata"}))


def commit(log: Log, *actions: Action) -> None:
    """One commit and its checksum, as the hook after a commit writes it."""
    version = log.commit(*actions)
    written = parse_commit(commit_name(version), log.store.get(commit_name(version)), log.store.url)
    before = log.state(version - 1) if version else replace(log.state(0))
    state = advance_state(before, written)
    write_checksum_after(log.store, version, state, written)


def test_the_first_commit_has_a_checksum_in_the_specifications_words() -> None:
    log = memory_log()
    commit(log, PROTOCOL, METADATA, add("a", size=5), SetTransaction("app", 3), DomainMetadata("d", "x"))
    value = json.loads(log.store.get(checksum_name(0)))
    sizes = value.pop("fileSizeHistogram")
    assert (len(sizes["sortedBinBoundaries"]), sum(sizes["fileCounts"]), sum(sizes["totalBytes"])) == (95, 1, 5)
    assert {name: value.pop(name) for name in list(value) if name.startswith("tahoe.")}.keys() == {"tahoe.version", "tahoe.crc32"}
    assert value == {
        "txnId": "txn-0",
        "tableSizeBytes": 5,
        "numFiles": 1,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [{"appId": "app", "version": 3}],
        "domainMetadata": [{"domain": "d", "configuration": "x", "removed": False}],
        "metadata": METADATA.to_json_value(),
        "protocol": PROTOCOL.to_json_value(),
    }


@pytest.mark.parametrize("seed", range(10))
def test_an_incremental_checksum_equals_the_sum_of_the_files(seed: int) -> None:
    chance = random.Random(seed)
    log = memory_log()
    commit(log, WITH_VECTORS, METADATA, add("f0"))
    for number in range(1, 8):
        actions: list[Action] = [add(f"f{number}", size=chance.randrange(99))]
        for old in chance.sample(list(log.versions[-1].values()), min(2, len(log.versions[-1]))):
            actions.append(remove(old))
            if chance.random() < 0.6:
                actions.append(replace(old, deletion_vector=vector(f"v{number}", chance.randrange(1, 9))))
        if chance.random() < 0.4:
            actions.append(SetTransaction("app", number))
        commit(log, *actions)
        segment = segment_for(log.store)
        state, files = LogReader(log.store, segment).state(), LogReader(log.store, segment).files()
        config = TableConfig(state.protocol, state.metadata, log.store.url)
        assert read_checksum(log.store, number) == checksum_of(state, files, config)


def test_in_commit_timestamps_are_stated_where_they_are_on() -> None:
    log = memory_log()
    features = Protocol(1, 7, None, frozenset({"inCommitTimestamp"}))
    metadata = replace(METADATA, configuration={"delta.enableInCommitTimestamps": "true"})
    version = log.commit(CommitInfo({"inCommitTimestamp": 55, "txnId": "t"}), features, metadata, info=False)
    written = parse_commit(commit_name(version), log.store.get(commit_name(version)), log.store.url)
    actual = write_checksum_after(log.store, version, log.state(), written)
    assert actual is not None and (actual.in_commit_timestamp, actual.transaction_id) == (55, "t")
    assert read_checksum(log.store, version) == actual


@pytest.mark.parametrize(
    "actions",
    [
        [RemoveFile("a", 5, True)],
        [replace(add("a"), data_change=False, tags={"new": "statistics"})],
    ],
)
def test_a_commit_that_lacks_it_leaves_its_version_without_one(actions: Sequence[Action]) -> None:
    log = memory_log()
    commit(log, PROTOCOL, METADATA, add("a"))
    commit(log, *actions)
    commit(log, add("b"))
    assert read_checksum(log.store, 1) is None and read_checksum(log.store, 2) is None


def test_a_file_that_is_added_again_beside_other_changes_leaves_its_version_without_one() -> None:
    log = memory_log()
    log.begin(add("a"), add("b"))
    log.checksum()
    written = [CommitInfo({"txnId": "txn-1"}), remove(add("b")), replace(add("a"), data_change=False, tags={"new": "tag"})]
    log.commit(*written[1:])
    assert write_checksum_after(log.store, 1, log.state(), written, adds_again=True) is None
    assert read_checksum(log.store, 1) is None


def test_one_that_is_there_is_never_overwritten() -> None:
    log = memory_log()
    commit(log, PROTOCOL, METADATA)
    actual = read_checksum(log.store, 0)
    assert actual is not None
    assert not write_checksum(log.store, 0, replace(actual, num_files=9))
    assert read_checksum(log.store, 0) == actual


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"numMetadata":2,"numProtocol":1}', b"\xff", b"null"])
def test_a_damaged_one_says_so_by_name(data: bytes) -> None:
    with pytest.raises(CorruptTable, match=checksum_name(4)):
        parse_checksum(checksum_name(4), data, "memory://m/t")


def test_one_as_spark_writes_it_is_understood() -> None:
    text = {
        "txnId": "0d1b",
        "tableSizeBytes": 1,
        "numFiles": 1,
        "numDeletedRecordsOpt": 0,
        "numDeletionVectorsOpt": 0,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": METADATA.to_json_value(),
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        "histogramOpt": {"sortedBinBoundaries": [0], "fileCounts": [1], "totalBytes": [1]},
        "allFiles": [add("a").to_json_value()],
    }
    actual = parse_checksum(checksum_name(0), json.dumps(text).encode(), "memory://m/t")
    assert (actual.num_files, actual.num_deleted_records, actual.protocol) == (1, 0, Protocol(1, 2))


def test_histograms_are_those_of_the_specification() -> None:
    log = memory_log()
    commit(log, WITH_VECTORS, METADATA, add("small", size=8_191), add("more", size=8_192), add("huge", size=1 << 39))
    commit(log, remove(add("more", size=8_192)), add("more", size=8_192, deletion_vector=vector("v", 12)))
    value = json.loads(log.store.get(checksum_name(1)))
    sizes = value["fileSizeHistogram"]
    actual = {low: n for low, n in zip(sizes["sortedBinBoundaries"], sizes["fileCounts"], strict=True) if n}
    assert actual == {0: 1, 8_192: 1, 1 << 38: 1}
    assert value["deletedRecordCountsHistogramOpt"] == {"deletedRecordCounts": [2, 0, 1, 0, 0, 0, 0, 0, 0, 0]}
    assert (value["numDeletedRecordsOpt"], value["numDeletionVectorsOpt"]) == (12, 1)


@pytest.mark.parametrize("step", [17, pytest.param(3, marks=pytest.mark.soak)])
def test_every_flipped_bit_and_cut_of_our_own_is_reported_or_changes_nothing(step: int) -> None:
    log = memory_log()
    commit(log, WITH_VECTORS, METADATA, add("a", size=5), SetTransaction("app", 3), DomainMetadata("d", "x"))
    name = checksum_name(0)
    data, truth = log.store.get(name), read_checksum(log.store, 0)
    for bit in range(0, len(data) * 8, step):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert _parsed_or_reported(name, bytes(flipped)) in (truth, "told")
    for end in range(len(data)):
        with pytest.raises(CorruptTable, match=name):
            parse_checksum(name, data[:end], log.store.url)


def test_one_that_stands_in_the_place_of_another_is_not_used() -> None:
    log = memory_log()
    commit(log, PROTOCOL, METADATA, add("a"))
    commit(log, add("b"))
    log.store.put(checksum_name(1), log.store.get(checksum_name(0)))
    with pytest.raises(CorruptTable, match="version 0"):
        read_checksum(log.store, 1)
    assert len(log.live()) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"setTransactions": [{"appId": "gone", "version": 1}]},
        {"domainMetadata": [{"domain": "d", "configuration": "other", "removed": False}]},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metadata": {**METADATA.to_json_value(), "id": "another"}},
    ],
    ids=str,
)
def test_one_that_disagrees_with_the_log_is_not_carried_forward(changes: dict[str, object]) -> None:
    log = memory_log()
    log.begin(add("a"), DomainMetadata("d", "x"))
    log.checksum(**changes)
    written = [CommitInfo({"txnId": "txn-1"}), add("b")]
    log.commit(*written[1:])
    log.store.delete(checksum_name(0))
    state = log.state()
    log.checksum(0, **changes)
    assert write_checksum_after(log.store, 1, state, written) is None
    log.store.delete(checksum_name(0))
    log.checksum(0)
    assert write_checksum_after(log.store, 1, state, written) is not None


def test_where_the_live_files_are_at_hand_a_wrong_count_is_not_carried_forward_and_a_broken_chain_starts_again() -> None:
    log = memory_log()
    log.begin(add("a"))
    log.checksum(numFiles=5)
    log.commit(add("b"))
    state, files = log.state(), LogReader(log.store, segment_for(log.store)).files()
    written = [CommitInfo({"txnId": "txn-1"}), add("b")]
    assert write_checksum_after(log.store, 1, state, written, files) is None
    log.store.delete(checksum_name(0))
    assert write_checksum_after(log.store, 1, state, written) is None
    actual = write_checksum_after(log.store, 1, state, written, files)
    assert actual is not None and actual.num_files == 2


def _parsed_or_reported(name: str, data: bytes) -> object:
    try:
        return parse_checksum(name, data, "memory://m/t")
    except CorruptTable as error:
        return "told" if name in error.message else error
