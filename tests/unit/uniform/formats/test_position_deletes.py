"""Position delete files read back by Tahoe and by PyIceberg."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO, _read_deletes
from pyiceberg.manifest import DataFile as TheirDataFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyroaring import BitMap64

from tahoe.base.exceptions import CorruptTable
from tahoe.uniform.formats import position_deletes
from tahoe.uniform.formats.position_deletes import groups, position_delete_bytes, positions_in

DEAD = st.sets(st.integers(0, 70_000) | st.integers(0, 2**40), min_size=1, max_size=30).map(BitMap64)


@given(st.dictionaries(st.text(min_size=1, max_size=8), DEAD, min_size=1, max_size=6))
def test_a_position_delete_file_is_sorted_and_read_back(dead):
    (group,) = groups(dead)
    data = position_delete_bytes(group)
    assert positions_in(data, "f") == dead
    rows = pq.read_table(io.BytesIO(data)).to_pylist()
    keys = [(row["file_path"].encode(), row["pos"]) for row in rows]
    assert keys == sorted(keys)
    assert position_delete_bytes(group) == data, "the same rows give the same bytes"


def test_pyiceberg_reads_a_position_delete_file(tmp_path: Path):
    dead = {"file:///b": BitMap64([3, 1]), "file:///a": BitMap64([2**33, 0])}
    (group,) = groups(dead)
    path = tmp_path / "deletes.parquet"
    path.write_bytes(position_delete_bytes(group))
    theirs = TheirDataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=f"file://{path}", file_format=FileFormat.PARQUET
    )
    deletes = _read_deletes(PyArrowFileIO(), theirs)
    assert {name: positions.to_pylist() for name, positions in deletes.items()} == {"file:///a": [0, 2**33], "file:///b": [1, 3]}


def test_a_group_is_split_by_rows_and_by_files(monkeypatch):
    monkeypatch.setattr(position_deletes, "MOST_ROWS", 10)
    monkeypatch.setattr(position_deletes, "MOST_FILES", 3)
    dead = {f"f{i}": BitMap64(range(size)) for i, size in enumerate([4, 4, 4, 25, 1, 1, 1, 1])}
    assert [list(group) for group in groups(dead)] == [["f0", "f1"], ["f2"], ["f3"], ["f4", "f5", "f6"], ["f7"]]


def test_the_error_for_a_corrupt_position_delete_file_names_it():
    with pytest.raises(CorruptTable, match=r"d\.parquet"):
        positions_in(b"PAR1 no", "d.parquet")
