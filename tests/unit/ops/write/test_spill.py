"""Rows in groups, some of them on disk: all come back, in the order in which they came."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.ops.write.spill import Spill, sorted_by_group


def batches() -> list[pa.RecordBatch]:
    return [pa.record_batch({"v": pa.array(range(i * 100, i * 100 + 100), pa.int64()), "t": ["x" * 10] * 100}) for i in range(10)]


@pytest.mark.parametrize("most_bytes", [0, 5_000, 10**9])
def test_every_group_gives_its_rows_in_order(most_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Spill(most_bytes) as spill:
        for batch in batches():
            spill.add(*sorted_by_group(batch, pa.array([v % 7 for v in batch["v"].to_pylist()], pa.int64())))
        assert bool(list(tmp_path.iterdir())) == (most_bytes < 10**9)
        assert spill.groups == list(range(7))
        for group in range(7):
            assert [v for batch in spill.take(group) for v in batch["v"].to_pylist()] == [
                v for v in range(1000) if v % 7 == group
            ]
        assert list(spill.take(3)) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("most_bytes", [0, 5_000, 10**9])
def test_rows_of_one_group_come_as_they_are(most_bytes: int) -> None:
    with Spill(most_bytes) as spill:
        for number, batch in enumerate(batches()):
            spill.add_to(1 - number % 2, batch)
        assert spill.groups == [0, 1]
        for group in spill.groups:
            expected = [v for number, batch in enumerate(batches()) if 1 - number % 2 == group for v in batch["v"].to_pylist()]
            assert [v for batch in spill.take(group) for v in batch["v"].to_pylist()] == expected


def test_rows_that_are_not_sorted_come_to_their_groups_too() -> None:
    rows = pa.record_batch({"v": pa.array([1, 2, 3, 4], pa.int64())})
    with Spill(10**9) as spill:
        spill.add(rows, pa.array([5, 0, 5, 5], pa.int64()))
        assert [v for batch in spill.take(5) for v in batch["v"].to_pylist()] == [1, 3, 4]


def test_spilled_files_are_deleted_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail() -> None:
        with Spill(0) as spill:
            spill.add(batches()[0], pa.repeat(pa.scalar(1, pa.int64()), 100))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []
