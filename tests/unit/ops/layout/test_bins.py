"""Which files are packed together, as the reference packs them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.ops.layout.bins import Rules, bins_of, one_bin_a_partition, target_for_rewrites
from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor


def file(name: str, size: int, dead: int = 0, rows: int | None = 100, part: str | None = None) -> AddFile:
    vector = DeletionVectorDescriptor("u", "x" * 20, 34, dead, 1) if dead else None
    stats = None if rows is None else f'{{"numRecords":{rows}}}'
    return AddFile(name, {} if part is None else {"p": part}, size, 0, True, stats, deletion_vector=vector)


def packed(adds: list[AddFile]) -> list[set[str]]:
    return [{add.path for add in item.adds} for item in bins_of(adds, Rules(100, 100))]


def test_small_files_are_packed_smallest_first_up_to_the_target() -> None:
    assert packed([file("a", 60), file("b", 30), file("c", 20), file("d", 45)]) == [{"c", "b", "d"}]
    # d is alone in its bin, and so is a.
    assert packed([file("a", 60), file("b", 40), file("c", 20), file("d", 45)]) == [{"c", "b"}]


def test_a_file_alone_is_left_alone_unless_it_has_a_vector() -> None:
    assert packed([file("a", 60)]) == []
    assert packed([file("a", 60, dead=1)]) == [{"a"}]


def test_large_files_are_left_alone_unless_more_rows_are_dead_than_may_be() -> None:
    assert packed([file("a", 100), file("b", 500)]) == []
    assert packed([file("a", 500, dead=5)]) == []
    assert packed([file("a", 500, dead=6)]) == [{"a"}]
    assert packed([file("a", 500, dead=1, rows=None)]) == [{"a"}]  # nobody knows how many


def test_files_of_different_partitions_are_never_packed_together() -> None:
    assert packed([file("a", 1, part="x"), file("b", 1, part="y"), file("c", 1, part="x")]) == [{"a", "c"}]
    actual = one_bin_a_partition([file("a", 1, part="x"), file("b", 1000, part="y"), file("c", 1, part="x")])
    assert [{add.path for add in item.adds} for item in actual] == [{"a", "c"}, {"b"}]


@given(st.lists(st.integers(1, 150), max_size=30), st.integers(1, 100))
def test_every_bin_fits_and_no_two_could_be_one(sizes: list[int], target: int) -> None:
    bins = bins_of([file(str(i), size) for i, size in enumerate(sizes)], Rules(target, 1000))
    assert all(item.size <= target for item in bins)
    names = [add.path for item in bins for add in item.adds]
    assert len(names) == len(set(names))
    # A remaining file did not fit into its neighbour's bin: at most every second small file stays alone.
    alone = [size for i, size in enumerate(sizes) if str(i) not in names and size <= target // 2]
    assert len(alone) <= 1


@pytest.mark.parametrize(("gigabytes", "megabytes"), [(0, 256), (2_560, 256), (6_280, 640), (10_000, 1024), (50_000, 1024)])
def test_files_of_a_table_that_is_rewritten_often_grow_with_it(gigabytes: int, megabytes: int) -> None:
    assert target_for_rewrites(gigabytes * 1024**3) == megabytes * 1024**2
