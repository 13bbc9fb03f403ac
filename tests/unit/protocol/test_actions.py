"""Actions as lines of a commit, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    SidecarFile,
    action_from_json,
    to_json_line,
)

VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 1)
ADD = AddFile(
    "a%20b", {"p": None}, 10, 1, True, '{"numRecords":5}', {"t": "x"}, VECTOR, base_row_id=3, default_row_commit_version=2
)
ACTIONS: list[Action] = [
    Protocol(1, 2),
    Protocol(3, 7, frozenset({"b", "a"}), frozenset()),
    Metadata("id", '{"type":"struct","fields":[]}', ("p",), {"k": "v"}, created_time=5, name="n", description="d"),
    ADD,
    ADD.remove(7),
    RemoveFile("gone", 1, False),
    AddCDCFile("_change_data/c", {"p": "1"}, 9),
    SetTransaction("app", 7, 1),
    DomainMetadata("d", "{}", True),
    CommitInfo({"operation": "X", "unknown": [1]}),
    CheckpointMetadata(3, {"t": "1"}),
    SidecarFile("s.parquet", 1, 2, {"t": "1"}),
]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: type(action).__name__)
def test_an_action_equals_its_line(action: Action) -> None:
    line = to_json_line(action)
    assert "\n" not in line and action_from_json(json.loads(line)) == action


def test_feature_lists_are_written_in_the_order_of_their_names_and_not_below_their_versions() -> None:
    assert '"readerFeatures":["a","b"]' in to_json_line(ACTIONS[1])
    assert "Features" not in to_json_line(ACTIONS[0])


def test_a_logical_file_is_its_path_and_its_vector_and_so_is_its_tombstone() -> None:
    assert ADD.key == ("a%20b", "uab^-aqEH.-t@S}K{vb[*k^@1")
    tombstone = ADD.remove(7, data_change=False)
    assert (tombstone.key, tombstone.deletion_timestamp, tombstone.data_change) == (ADD.key, 7, False)
    assert (tombstone.size, tombstone.base_row_id, tombstone.default_row_commit_version) == (10, 3, 2)


@pytest.mark.parametrize(
    ("stats", "count"),
    [
        ('{"numRecords":5}', 5),
        ('{"minValues":{},"numRecords": 7}', 7),
        ("{}", None),
        ("no json", None),
        ("[]", None),
        (None, None),
    ],
)
def test_the_number_of_records_is_that_of_the_statistics(stats: str | None, count: int | None) -> None:
    assert AddFile("a", {}, 1, 1, True, stats).num_records == count


def test_an_action_that_is_not_known_is_ignored_and_a_damaged_one_is_reported() -> None:
    assert action_from_json({"future": {}}) is None
    broken: list[dict[str, Any]] = [
        {"add": {"path": 1}},
        {"add": []},
        {"protocol": {}},
        {"metaData": {"id": 1}},
        {"txn": {"appId": "a"}},
    ]
    for line in broken:
        with pytest.raises(CorruptTable) as caught:
            action_from_json(line)
        assert caught.value.code == "TAHOE_CORRUPT_ACTION" and next(iter(line)) in caught.value.message


def test_a_commit_shows_its_transaction_and_its_time_where_they_are_of_the_right_kind() -> None:
    assert CommitInfo({"txnId": "x", "inCommitTimestamp": 5}).transaction_id == "x"
    assert CommitInfo({"txnId": "x", "inCommitTimestamp": 5}).in_commit_timestamp == 5
    odd = CommitInfo({"txnId": 1, "inCommitTimestamp": "5"})
    assert (odd.transaction_id, odd.in_commit_timestamp) == (None, None)
