"""The properties of a concurrent commit, from its actions."""

from __future__ import annotations

from dataclasses import replace

from tahoe.protocol.actions import CommitInfo
from tahoe.testing.log_builder import METADATA, PROTOCOL, add, remove, vector
from tahoe.txn.concurrent_commit import ConcurrentCommit

ONE = add("one")


def test_a_concurrent_commit_has_its_actions_by_kind() -> None:
    winner = ConcurrentCommit(
        3, (CommitInfo({"operation": "WRITE", "isBlindAppend": True}), PROTOCOL, METADATA, ONE, remove(add("two")))
    )
    assert (winner.operation, winner.is_blind_append) == ("WRITE", True)
    assert (winner.protocol, winner.metadata) == (PROTOCOL, METADATA)
    assert winner.adds == [ONE] and [action.path for action in winner.removes] == ["two"]


def test_a_commit_without_commit_info_is_not_a_blind_append() -> None:
    winner = ConcurrentCommit(3, ())
    assert (winner.operation, winner.is_blind_append, winner.protocol, winner.metadata) == (
        "an unnamed operation",
        False,
        None,
        None,
    )
    assert winner.only_rearranges


def test_a_commit_rearranges_if_none_of_its_files_changes_data() -> None:
    quiet = (replace(ONE, data_change=False), replace(remove(add("two")), data_change=False))
    assert ConcurrentCommit(1, quiet).only_rearranges
    assert not ConcurrentCommit(1, (*quiet, ONE)).only_rearranges
    assert not ConcurrentCommit(1, (*quiet, remove(ONE))).only_rearranges


def test_only_remaining_files_with_another_vector_are_vector_changes() -> None:
    with_vector = add("a%20b", deletion_vector=vector("v"))
    winner = ConcurrentCommit(1, (remove(add("a%20b")), with_vector, remove(add("gone")), add("new"), remove(ONE), ONE))
    [(path, (removed, added))] = winner.vector_changes("memory://t").items()
    assert path.endswith(("a b", "a%20b"))
    assert removed.key == add("a%20b").key and added is with_vector
