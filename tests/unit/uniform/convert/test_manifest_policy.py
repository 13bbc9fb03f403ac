"""Sizes and merging of manifests, from counts alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tahoe.uniform.convert.manifest_policy import LEAST_ENTRIES, MAX_SMALL, chunks, many_small, merges, most_entries
from tahoe.uniform.formats.manifests import ManifestFile

SIZES = st.lists(st.integers(1, 300), max_size=80)


def manifests(sizes: list[int]) -> list[ManifestFile]:
    return [ManifestFile(f"m{i}", 1, 0, 1, 1, 7, size, 0, 0, size, 0, 0, ()) for i, size in enumerate(sizes)]


def test_manifests_grow_with_the_table():
    assert most_entries(0) == most_entries(100_000) == LEAST_ENTRIES
    assert most_entries(4_000_000) == 1000
    assert most_entries(400_000_000) == 10_000


@given(SIZES, st.integers(2, 400))
def test_every_manifest_is_either_carried_over_or_merged_once(sizes, most):
    current = manifests(sizes)
    unmerged, groups = merges(current, most)
    merged = [manifest for group in groups for manifest in group]
    assert sorted(m.path for m in [*unmerged, *merged]) == sorted(m.path for m in current)
    assert all(group and sum(m.live_files for m in group) <= most for group in groups)
    assert all(m.live_files < most // 2 for m in merged)
    assert not merged or MAX_SMALL < len(merged) <= 2 * MAX_SMALL


def test_small_manifests_are_left_until_they_are_many():
    assert many_small(manifests([1] * MAX_SMALL), 256) == []
    assert len(many_small(manifests([1] * (MAX_SMALL + 1)), 256)) == MAX_SMALL + 1
    assert merges(manifests([200] * 100), 256)[1] == []


def test_the_oldest_are_merged_first():
    """New manifests come first in the list."""
    _, groups = merges(manifests([1] * 100), 256)
    assert [manifest.path for manifest in groups[0]] == [f"m{i}" for i in range(100 - 2 * MAX_SMALL, 100)]


def test_entries_are_split_into_manifests():
    assert [len(chunk) for chunk in chunks(iter(range(7)), 3)] == [3, 3, 1]
    assert list(chunks(iter([]), 3)) == []
