"""The files of each task of a scan."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tahoe.spark.executors.data_source_tasks import binned

MB = 1024 * 1024


@dataclass(frozen=True)
class File:
    size: int | None


@pytest.mark.parametrize(
    ("sizes", "cores", "expected"),
    [
        ([], 2, []),
        ([None, 10, 10], 2, [3]),
        ([1 * MB] * 4, 2, [4]),
        ([10 * MB] * 8, 2, [4, 4]),
        ([10 * MB, 10 * MB + 1] * 4, 2, [4, 4]),
        ([100 * MB] * 4, 1, [1, 1, 1, 1]),
        ([500 * MB, 1, 1], 2, [1, 2]),
        ([3 * MB] * 8, 16, [1] * 8),
    ],
)
def test_a_task_has_its_share_of_the_bytes_within_limits(sizes: list[int | None], cores: int, expected: list[int]) -> None:
    files = [File(size) for size in sizes]
    bins = list(binned(files, cores))
    assert [len(part) for part in bins] == expected
    assert [file for part in bins for file in part] == files
