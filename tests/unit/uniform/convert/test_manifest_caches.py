"""The manifest caches are bounded and evict the least recently used entry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tahoe.uniform.convert import manifest_caches
from tahoe.uniform.convert.manifest_caches import ManifestCaches, ManifestLists, PathIndex
from tahoe.uniform.formats.manifests import ManifestFile

MANIFEST = ManifestFile("m0", 1, 0, 1, 1, 7, 1, 0, 0, 1, 0, 0, ())


def named(*paths: str) -> list[ManifestFile]:
    return [replace(MANIFEST, path=path) for path in paths]


def test_paths_are_cached_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_caches, "_INDEXED_PATHS", 10)
    index = PathIndex()
    for number in range(3):
        index.put(f"m{number}", frozenset(range(4 * number, 4 * number + 4)))
    assert [hashes is None for hashes in index.of(named("m0", "m1", "m2"))] == [True, False, False]
    index.of(named("m1"))  # used again: m2 is now the least recently used
    index.put("m3", frozenset(range(4)))
    assert [hashes is None for hashes in index.of(named("m1", "m2", "m3"))] == [False, True, False]


def test_a_single_manifest_is_cached_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_caches, "_INDEXED_PATHS", 10)
    index = PathIndex()
    index.put("m0", frozenset(range(100)))
    assert index.of(named("m0")) == [frozenset(range(100))]


def test_lists_are_cached_up_to_a_number_and_returned_as_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_caches, "_KEPT_LISTS", 2)
    lists = ManifestLists()
    for number in range(3):
        lists.put(f"l{number}", named(f"m{number}"))
    assert lists.get("l0") is None
    cached = lists.get("l2")
    assert cached == named("m2")
    cached.clear()
    assert lists.get("l2") == named("m2")


def test_clear_empties_both_caches() -> None:
    caches = ManifestCaches()
    caches.paths.put("m0", frozenset([1]))
    caches.lists.put("l0", named("m0"))
    caches.clear()
    assert (caches.paths.of(named("m0")), caches.lists.get("l0")) == ([None], None)
