"""What a stream takes of a commit, and which commits stop it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tahoe.exceptions import InvalidRequest
from tahoe.protocol.actions import Action, AddCDCFile, CommitInfo, Metadata
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.streamed_commit import StreamedCommit, streamed_commit
from tahoe.testing.log_builder import add, remove, vector

A, B = add("a"), add("b", size=7)
MOVED = replace(add("c"), data_change=False)
GROWN = replace(A, deletion_vector=vector("v"))
CDC = AddCDCFile("_change_data/x", {"part": "a"}, 5)


def taken(*actions: Action, **options: Any) -> StreamedCommit:
    return streamed_commit(actions, 4, SourceOptions(**options), "memory://t")


def paths(commit: StreamedCommit) -> list[tuple[int, str]]:
    assert {file.version for file in commit.files} <= {4}
    return [(file.index, file.action.path) for file in commit.files]


def test_added_files_are_counted_in_their_order() -> None:
    assert paths(taken(CommitInfo({}), A, MOVED, B)) == [(0, "a"), (1, "b")]


def test_files_that_were_only_laid_out_anew_are_none_of_a_stream() -> None:
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
def test_what_stands_for_a_change(option: str, expected: list[tuple[int, str]]) -> None:
    assert paths(taken(remove(A), B, **{option: True})) == expected


def test_commits_that_delete_are_passed_over_where_that_is_allowed() -> None:
    assert paths(taken(remove(A), ignore_deletes=True)) == []
    assert paths(taken(A, ignore_deletes=True)) == [(0, "a")]


def test_a_feed_takes_change_data_files_and_else_what_came_and_went() -> None:
    told = taken(remove(A), CDC, B, read_change_feed=True)
    assert paths(told) == [(0, "_change_data/x")] and told.is_one
    told = taken(remove(A), MOVED, B, read_change_feed=True)
    assert paths(told) == [(0, "a"), (1, "b")] and not told.is_one


@pytest.mark.parametrize("actions", [(remove(A), GROWN), (remove(GROWN), B)])
def test_files_with_vectors_belong_together_in_a_feed(actions: tuple[Any, ...]) -> None:
    assert taken(*actions, read_change_feed=True).is_one
    assert not taken(*actions, ignore_changes=True).is_one


def test_what_else_a_commit_tells() -> None:
    metadata = Metadata("id", "{}")
    told = taken(CommitInfo({"inCommitTimestamp": 17}), metadata)
    assert (told.metadata, told.protocol, told.in_commit_timestamp, told.files) == (metadata, None, 17, ())


def test_the_size_of_a_removal_that_does_not_tell_it() -> None:
    told = taken(replace(remove(A), size=None), B, read_change_feed=True)
    assert [file.size for file in told.files] == [0, 7]
