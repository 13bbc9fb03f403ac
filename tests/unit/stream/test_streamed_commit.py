"""The part of a commit that a stream reads, and the commits that stop it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.actions import Action, AddCDCFile, CommitInfo, Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.streamed_commit import IndexedFile, StreamedCommit, streamed_commit
from tahoe.testing.log_builder import METADATA, add, remove, vector

A, B = add("a"), add("b", size=7)
MOVED = replace(add("c"), data_change=False)
GROWN = replace(A, deletion_vector=vector("v"))
CDC = AddCDCFile("_change_data/x", {"part": "a"}, 5)


def taken(*actions: Action, **options: Any) -> StreamedCommit:
    return streamed_commit(actions, 4, SourceOptions(**options), "memory://t")


def paths(commit: StreamedCommit) -> list[tuple[int, str]]:
    assert {file.version for file in commit.files} <= {4}
    return [(file.index, file.action.path) for file in commit.files]


def test_added_files_are_indexed_in_order() -> None:
    assert paths(taken(CommitInfo({}), A, MOVED, B)) == [(0, "a"), (1, "b")]


def test_rearranged_files_are_not_part_of_a_stream() -> None:
    assert paths(taken(replace(remove(A), data_change=False), MOVED)) == []
    assert paths(taken(replace(remove(A), data_change=False), MOVED, read_change_feed=True)) == []


@pytest.mark.parametrize("options", [{}, {"exclude_regex": "a"}])
def test_a_commit_that_deletes_stops_a_stream(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=r"ignoreDeletes.*skipChangeCommits") as caught:
        taken(remove(A), **options)
    assert caught.value.code == "DELTA_SOURCE_IGNORE_DELETE"


@pytest.mark.parametrize("options", [{}, {"ignore_deletes": True}])
@pytest.mark.parametrize("added", [B, GROWN], ids=["a new file", "a grown vector"])
def test_a_commit_that_changes_rows_stops_a_stream(added: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="skipChangeCommits") as caught:
        taken(CommitInfo({"operation": "UPDATE"}), remove(A), added, **options)
    assert caught.value.code == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    assert "UPDATE" in str(caught.value) and caught.value.facts["version"] == 4


@pytest.mark.parametrize(
    ("option", "expected"),
    [("ignore_changes", [(0, "b")]), ("ignore_file_deletion", [(0, "b")]), ("skip_change_commits", [])],
)
def test_options_determine_how_a_change_is_read(option: str, expected: list[tuple[int, str]]) -> None:
    assert paths(taken(remove(A), B, **{option: True})) == expected


def test_commits_that_delete_are_skipped_if_allowed() -> None:
    assert paths(taken(remove(A), ignore_deletes=True)) == []
    assert paths(taken(A, ignore_deletes=True)) == [(0, "a")]


def test_a_feed_reads_change_data_files_or_else_added_and_removed_files() -> None:
    commit = taken(remove(A), CDC, B, read_change_feed=True)
    assert paths(commit) == [(0, "_change_data/x")] and commit.is_atomic
    commit = taken(remove(A), MOVED, B, read_change_feed=True)
    assert paths(commit) == [(0, "a"), (1, "b")] and not commit.is_atomic


@pytest.mark.parametrize("actions", [(remove(A), GROWN), (remove(GROWN), B)])
def test_files_with_vectors_belong_together_in_a_feed(actions: tuple[Any, ...]) -> None:
    assert taken(*actions, read_change_feed=True).is_atomic
    assert not taken(*actions, ignore_changes=True).is_atomic


def test_a_commit_s_metadata_and_timestamp_are_returned() -> None:
    metadata = Metadata("id", "{}")
    commit = taken(CommitInfo({"inCommitTimestamp": 17}), metadata)
    assert (commit.metadata, commit.protocol, commit.in_commit_timestamp, commit.files) == (metadata, None, 17, ())


def test_a_removal_without_a_size_counts_as_empty() -> None:
    commit = taken(replace(remove(A), size=None), B, read_change_feed=True)
    assert [file.size for file in commit.files] == [0, 7]


def test_a_file_of_other_partition_columns_gets_null_for_those_of_the_schema() -> None:
    config = TableConfig(Protocol(1, 2), METADATA, "memory://t")
    older = IndexedFile(4, 0, replace(A, partition_values={"other": "x"}))
    assert older.with_partition_columns(config).action.partition_values == {"part": None, "other": "x"}
    newer = IndexedFile(4, 0, replace(A, partition_values={"part": "x"}))
    assert newer.with_partition_columns(config) is newer
