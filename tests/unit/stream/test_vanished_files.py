"""Files that went from storage under a stream: told by table, version and file, or left out, and asked for only where it lags."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from tahoe.exceptions import NotFound
from tahoe.snapshot.snapshot import Snapshot
from tahoe.stream import vanished_files
from tahoe.stream.source import Source
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.vanished_files import without_vanished
from tahoe.table import Table

Make = Callable[..., Table]


class Asked:
    """A store that counts the questions."""

    def __init__(self, table: Table) -> None:
        self._store, self.names = table.store, set[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def head(self, name: str) -> object:
        self.names.add(name)
        return self._store.head(name)


def batch(table: Table, **options: Any) -> list[Any]:
    found = Source(table.snapshot(), table.snapshot, SourceOptions(**options))
    return found.files(None, found.plan(None))


@pytest.mark.damages_tables
@pytest.mark.parametrize("options", [{}, {"starting_version": 1}, {"read_change_feed": True, "starting_version": 1}], ids=str)
def test_a_file_that_is_gone_is_told_or_left_out(make: Make, caplog: pytest.LogCaptureFixture, options: dict[str, Any]) -> None:
    table = make([1, 2], [3])
    read = table.snapshot()
    table.append(table.to_arrow().slice(0, 1))
    if not options:  # in the middle of an initial snapshot that is not the newest version any more
        found = Source(read, table.snapshot, SourceOptions())
        end = found.plan(None)
        gone = found.files(found.begin, end)[1].action.path
        table.store.delete(gone)
        with pytest.raises(NotFound, match="lags behind VACUUM") as caught:
            found.files(found.begin, end)
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


def test_what_the_newest_version_brought_is_not_asked_for(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make([1, 2], [3], [4])
    files, newest = batch(table, starting_version=1), table.snapshot()
    asked = Asked(table)
    assert without_vanished(asked, files, newest, fail_on_data_loss=True) == files  # type: ignore[arg-type]
    assert asked.names == {file.action.path for file in files if file.version < newest.version}
    assert without_vanished(asked, batch(table), newest, fail_on_data_loss=True)  # type: ignore[arg-type]
    # Of very many, only those that the newest version has no more.
    table.delete("id = 1")
    many, newest = Asked(table), Snapshot.at(table.store)
    monkeypatch.setattr(vanished_files, "_MANY", 2)
    assert without_vanished(many, files, newest, fail_on_data_loss=True) == files  # type: ignore[arg-type]
    assert many.names == {files[0].action.path}
