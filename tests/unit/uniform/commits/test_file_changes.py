"""The difference between two snapshots: by their live files, whatever the status of the entries, and without shared manifests."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.uniform.commits.file_changes import FileChanges, file_changes
from tests.unit.uniform.commits.client_files import Written, manifest, manifest_list

SHARED, OLD, NEW, DELETES = "shared", "old", "new", "deletes"


def changes_of(files: dict[str, bytes], old: str | None = "old-list") -> FileChanges:
    return file_changes(old, "new-list", files.__getitem__)


def paths(files: object) -> list[str]:
    return [file.path for file in files]  # type: ignore[attr-defined]


def test_rewritten_manifests_are_compared_file_by_file_and_shared_ones_are_not_read() -> None:
    changes = changes_of(
        {
            "old-list": manifest_list([SHARED, OLD]),
            "new-list": manifest_list([SHARED, NEW]),
            OLD: manifest(Written("stays", status=1), Written("goes", status=1), Written("gone before", status=2)),
            NEW: manifest(Written("stays", status=0), Written("goes", status=2), Written("comes", status=1)),
        }
    )
    assert (paths(changes.added), changes.removed, changes.manifests) == (["comes"], ("goes",), (NEW,))
    assert not changes.only_adds


def test_a_manifest_that_is_left_out_removes_its_files() -> None:
    files = {"old-list": manifest_list([OLD]), "new-list": manifest_list([]), OLD: manifest(Written("a", status=1))}
    assert changes_of(files) == FileChanges(removed=("a",))


def test_a_first_snapshot_adds_all_its_files() -> None:
    changes = changes_of(
        {"new-list": manifest_list([NEW]), NEW: manifest(Written("a", status=1), Written("b", status=0))}, old=None
    )
    assert paths(changes.added) == ["a", "b"] and changes.only_adds


def test_files_of_deletes_are_apart() -> None:
    files = {
        "old-list": manifest_list({"gone": 1}),
        "new-list": manifest_list({DELETES: 1}),
        "gone": manifest(Written("d0", status=1, content=2)),
        DELETES: manifest(Written("d1", status=1, content=1)),
    }
    changes = changes_of(files)
    assert (paths(changes.deletes), paths(changes.dropped_deletes), changes.removed) == (["d1"], ["d0"], ())


def test_a_file_that_is_named_twice_is_refused() -> None:
    files = {"new-list": manifest_list([NEW, OLD]), NEW: manifest(Written("a", status=1)), OLD: manifest(Written("a", status=1))}
    with pytest.raises(InvalidRequest, match="name the file a twice"):
        changes_of(files, old=None)
