"""Files deleted under a stream: reported with table, version and file, or skipped, and checked only for a stream that lags."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import NotFound
from tahoe.snapshot.snapshot import Snapshot
from tahoe.stream import streamed_commit
from tahoe.stream.source import Source
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.streamed_commit import without_vanished

Make = Callable[..., Table]


class CountingStore:
    """A store that counts the requests."""

    def __init__(self, table: Table) -> None:
        self._store, self.names = table.store, set[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def head(self, name: str) -> object:
        self.names.add(name)
        return self._store.head(name)


def batch(table: Table, **options: Any) -> list[Any]:
    stream = Source(table.snapshot(), table.snapshot, SourceOptions(**options))
    return stream.files(None, stream.plan(None))


@pytest.mark.damages_tables
@pytest.mark.parametrize("options", [{}, {"starting_version": 1}, {"read_change_feed": True, "starting_version": 1}], ids=str)
def test_a_missing_file_is_reported_or_skipped(make: Make, caplog: pytest.LogCaptureFixture, options: dict[str, Any]) -> None:
    table = make([1, 2], [3])
    read = table.snapshot()
    table.append(table.to_arrow().slice(0, 1))
    if not options:  # inside an initial snapshot that is no longer the newest version
        stream = Source(read, table.snapshot, SourceOptions())
        end = stream.plan(None)
        gone = stream.files(stream.begin, end)[1].action.path
        table.store.delete(gone)
        with pytest.raises(NotFound, match="lags behind VACUUM") as caught:
            stream.files(stream.begin, end)
        version = 2
    else:
        gone = batch(table, **options)[1].action.path
        table.store.delete(gone)
        with pytest.raises(NotFound, match="lags behind VACUUM") as caught:
            batch(table, **options)
        version = 1
    assert caught.value.code == "DELTA_FILE_NOT_FOUND"
    assert caught.value.facts == {"table": table.url, "version": version, "file": gone}
    with caplog.at_level(logging.WARNING):
        rest = batch(table, fail_on_data_loss=False, starting_version=1)
    assert gone not in [file.action.path for file in rest] and len(rest) == 3 and gone in caplog.text


def test_files_added_by_the_newest_version_are_not_checked(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make([1, 2], [3], [4])
    files, newest = batch(table, starting_version=1), table.snapshot()
    counting = CountingStore(table)
    assert without_vanished(counting, files, newest, fail_on_data_loss=True) == files  # type: ignore[arg-type]
    assert counting.names == {file.action.path for file in files if file.version < newest.version}
    assert without_vanished(counting, batch(table), newest, fail_on_data_loss=True)  # type: ignore[arg-type]
    # Of very many files, only those that the newest version no longer has are checked.
    table.delete("id = 1")
    many, newest = CountingStore(table), Snapshot.at(table.store)
    monkeypatch.setattr(streamed_commit, "_MANY", 2)
    assert without_vanished(many, files, newest, fail_on_data_loss=True) == files  # type: ignore[arg-type]
    assert many.names == {files[0].action.path}
