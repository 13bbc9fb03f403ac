"""What is remembered of manifests is bounded, and what was not asked for longest goes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tahoe.uniform.convert import manifest_caches
from tahoe.uniform.convert.manifest_caches import ManifestCaches, ManifestLists, PathIndex
from tahoe.uniform.formats.manifests import ManifestFile

MANIFEST = ManifestFile("m0", 1, 0, 1, 1, 7, 1, 0, 0, 1, 0, 0, ())


def named(*paths: str) -> list[ManifestFile]:
    return [replace(MANIFEST, path=path) for path in paths]


def test_paths_are_known_until_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_caches, "_INDEXED_PATHS", 10)
    index = PathIndex()
    for number in range(3):
        index.put(f"m{number}", frozenset(range(4 * number, 4 * number + 4)))
    assert [hashes is None for hashes in index.of(named("m0", "m1", "m2"))] == [True, False, False]
    index.of(named("m1"))  # asked for again: m2 is now the one that leaves
    index.put("m3", frozenset(range(4)))
    assert [hashes is None for hashes in index.of(named("m1", "m2", "m3"))] == [False, True, False]


def test_one_manifest_is_kept_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_caches, "_INDEXED_PATHS", 10)
    index = PathIndex()
    index.put("m0", frozenset(range(100)))
    assert index.of(named("m0")) == [frozenset(range(100))]


def test_lists_are_kept_up_to_a_number_and_given_as_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_caches, "_KEPT_LISTS", 2)
    lists = ManifestLists()
    for number in range(3):
        lists.put(f"l{number}", named(f"m{number}"))
    assert lists.get("l0") is None
    known = lists.get("l2")
    assert known == named("m2")
    known.clear()
    assert lists.get("l2") == named("m2")


def test_all_is_forgotten_at_once() -> None:
    caches = ManifestCaches()
    caches.paths.put("m0", frozenset([1]))
    caches.lists.put("l0", named("m0"))
    caches.clear()
    assert (caches.paths.of(named("m0")), caches.lists.get("l0")) == ([None], None)
