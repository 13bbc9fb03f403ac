"""The difference between two snapshots: by their live files, for any status of the entries, and without shared manifests."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.uniform.commits.file_changes import FileChanges, file_changes
from tests.unit.uniform.commits.client_files import Written, manifest, manifest_list

SHARED, OLD, NEW, DELETES = "shared", "old", "new", "deletes"


Listed = list[str] | dict[str, int]
"""Data manifests, or manifests with their contents."""


def changes_of(files: dict[str, bytes], new: Listed, old: Listed | None = None) -> FileChanges:
    """The changes from the manifests `old` to the manifests `new`."""
    sizes = {path: len(data) for path, data in files.items()}
    lists = {"new-list": manifest_list(new, sizes), "old-list": manifest_list(old or [], sizes)}
    return file_changes(None if old is None else "old-list", "new-list", {**files, **lists}.__getitem__)


def paths(files: object) -> list[str]:
    return [file.path for file in files]  # type: ignore[attr-defined]


def test_rewritten_manifests_are_compared_file_by_file_and_shared_ones_are_not_read() -> None:
    changes = changes_of(
        {
            OLD: manifest(Written("stays", status=1), Written("goes", status=1), Written("gone before", status=2)),
            NEW: manifest(Written("stays", status=0), Written("goes", status=2), Written("comes", status=1)),
        },
        [SHARED, NEW],
        [SHARED, OLD],
    )
    assert (paths(changes.added), changes.removed, changes.manifests) == (["comes"], ("goes",), (NEW,))
    assert not changes.only_adds


def test_a_manifest_that_is_left_out_removes_its_files() -> None:
    assert changes_of({OLD: manifest(Written("a", status=1))}, [], [OLD]) == FileChanges(removed=("a",))


def test_a_first_snapshot_adds_all_its_files() -> None:
    changes = changes_of({NEW: manifest(Written("a", status=1), Written("b", status=0))}, [NEW])
    assert paths(changes.added) == ["a", "b"] and changes.only_adds


def test_files_of_deletes_are_apart() -> None:
    files = {
        "gone": manifest(Written("d0", status=1, content=2)),
        DELETES: manifest(Written("d1", status=1, content=1)),
    }
    changes = changes_of(files, {DELETES: 1}, {"gone": 1})
    assert (paths(changes.deletes), paths(changes.dropped_deletes), changes.removed) == (["d1"], ["d0"], ())


def test_a_file_that_is_named_twice_is_refused() -> None:
    files = {NEW: manifest(Written("a", status=1)), OLD: manifest(Written("a", status=1))}
    with pytest.raises(InvalidRequest, match="name the file a twice"):
        changes_of(files, [NEW, OLD])
