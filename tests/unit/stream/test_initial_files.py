"""The files of a snapshot in a stream's order."""

from __future__ import annotations

import pytest

from tahoe.log.replay import files_table
from tahoe.protocol.actions import AddFile
from tahoe.stream import streamed_commit
from tahoe.stream.streamed_commit import InitialFiles


class Version:
    version = 6

    def __init__(self, *files: tuple[str, int, int]) -> None:
        self.adds = [AddFile(path, {}, size, modified, False) for path, size, modified in files]

    def files(self):
        return files_table(self.adds)


def test_files_come_by_modification_time_and_then_by_the_bytes_of_their_path() -> None:
    files = InitialFiles.of(Version(("z", 1, 5), ("é", 2, 7), ("a", 3, 7), ("Z", 4, 7), ("y", 5, 6)))
    indexed = [(file.version, file.index, file.action.path) for file in files.between(0, len(files))]
    assert indexed == [(6, 0, "z"), (6, 1, "y"), (6, 2, "Z"), (6, 3, "a"), (6, 4, "é")]
    assert list(files.sizes(0, 5)) == [1, 5, 4, 3, 2]


@pytest.mark.parametrize("chunk", [1, 2, 1024])
def test_a_range_equals_that_part_of_all_files(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_commit, "_CHUNK", chunk)
    files = InitialFiles.of(Version(*((f"f{n}", n, 100 - n) for n in range(7))))
    assert list(files.sizes(2, 6)) == [4, 3, 2, 1]
    assert [(file.index, file.size) for file in files.between(2, 6)] == [(2, 4), (3, 3), (4, 2), (5, 1)]
    assert files.between(5, 3) == [] and list(files.sizes(5, 3)) == []


def test_a_table_without_files() -> None:
    files = InitialFiles.of(Version())
    assert len(files) == 0 and files.between(0, 0) == []
