"""Reading commits in order, and missing commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import NotFound
from tahoe.log.files.paths import commit_name
from tahoe.stream.commit_reader import CommitReader
from tahoe.stream.source_options import SourceOptions


@pytest.fixture
def table(make: Callable[..., Table]) -> Table:
    """Return a table with versions 0 to 5."""
    return make([1], [2], [3], [4], [5])


def reader(table: Table, seen: list[int] | None = None, **options: Any) -> CommitReader:
    seen = [] if seen is None else seen
    return CommitReader(table.store, SourceOptions(**options), lambda commit: seen.append(commit.version))


def versions(commits: CommitReader, first: int, last: int) -> list[int]:
    return [commit.version for commit in commits.between(first, last)]


def lose(table: Table, *lost: int) -> None:
    for version in lost:
        table.store.delete(commit_name(version))


def test_commits_come_in_order_and_metadata_is_checked(table: Table) -> None:
    table.set_properties({"delta.appendOnly": "false"})
    seen: list[int] = []
    assert versions(reader(table, seen), 0, 6) == [0, 1, 2, 3, 4, 5, 6]
    assert seen == [0, 6]


def test_a_commit_is_read_once_until_the_stream_is_past_it(table: Table) -> None:
    commits = reader(table)
    first = commits.read(2)
    assert commits.read(2) is first
    commits.forget_before(2)
    assert commits.read(2) is first
    commits.forget_before(3)
    assert commits.read(2) is not first


@pytest.mark.damages_tables
@pytest.mark.parametrize("lost", [(1,), (1, 2), (3,)])
@pytest.mark.damages_tables
def test_missing_commits_are_an_error(table: Table, lost: tuple[int, ...]) -> None:
    lose(table, *lost)
    with pytest.raises(NotFound, match=r"failOnDataLoss") as caught:
        versions(reader(table), 1, 5)
    assert caught.value.code == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    assert caught.value.facts["version"] == lost[0]


@pytest.mark.damages_tables
def test_missing_commits_may_be_skipped(table: Table) -> None:
    lose(table, 1, 2, 4)
    assert versions(reader(table, fail_on_data_loss=False), 1, 5) == [3, 5]


@pytest.mark.damages_tables
@pytest.mark.parametrize("fail", [True, False])
@pytest.mark.damages_tables
def test_the_newest_commits_are_never_skipped(table: Table, fail: bool) -> None:
    lose(table, 4, 5)
    with pytest.raises(NotFound) as caught:
        versions(reader(table, fail_on_data_loss=fail), 1, 5)
    assert caught.value.code == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


def test_many_commits_are_fetched_concurrently(make: Callable[..., Table], monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(*([n] for n in range(24)))
    asked: list[int] = []
    get_many = type(table.store).get_many

    def counted(store: Any, names: list[str]) -> list[bytes]:
        asked.append(len(names))
        return get_many(store, names)

    monkeypatch.setattr(type(table.store), "get_many", counted)
    commits = reader(table)
    assert versions(commits, 0, 24) == [*range(25)]
    assert asked == [2, 4, 8, 10]
    assert versions(commits, 0, 24) == [*range(25)] and len(asked) == 4, "nothing is fetched twice"
    table.append(pa.table({"id": [1]}))
    asked.clear()
    assert versions(commits, 25, 25) == [25] and asked == [], "one commit is one request"


@pytest.mark.damages_tables
@pytest.mark.parametrize("lost", [1, 2, 3, 6, 7, 8, 14, 15, 23])
@pytest.mark.damages_tables
def test_a_gap_is_detected_anywhere(make: Callable[..., Table], lost: int) -> None:
    table = make(*([n] for n in range(24)))
    lose(table, lost)
    assert versions(reader(table, fail_on_data_loss=False), 1, 24) == [version for version in range(1, 25) if version != lost]
    with pytest.raises(NotFound) as caught:
        versions(reader(table), 1, 24)
    assert caught.value.facts["version"] == lost
