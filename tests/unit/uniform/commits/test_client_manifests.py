"""Manifests and manifest lists of clients as values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.uniform.commits.client_avro import Budget
from tahoe.uniform.commits.client_manifests import ClientFile, ClientManifest, live_files_in, manifests_in
from tests.unit.uniform.commits.client_files import Written, manifest, manifest_list


def test_live_files_are_those_that_are_not_deleted() -> None:
    data = manifest(Written("a", status=0), Written("b"), Written("c", status=2))
    live = list(live_files_in(data, ClientManifest("m", len(data)), Budget()))
    assert live == [ClientFile(path, 0, "PARQUET", 3, 9) for path in ("a", "b")]


def test_a_manifest_list_names_manifests_with_their_content() -> None:
    data = manifest_list({"m0": 0, "m1": 1})
    actual = [(each.path, each.size, each.deletes) for each in manifests_in(data, "l").values()]
    assert actual == [("m0", 5, False), ("m1", 5, True)]


@pytest.mark.parametrize(("status", "content"), [(3, 0), (-1, 0), (1, 3)])
def test_an_invalid_entry_is_refused(status: int, content: int) -> None:
    data = manifest(Written("a", status=status, content=content))
    with pytest.raises(InvalidRequest, match="The manifest m has an entry without a valid field"):
        list(live_files_in(data, ClientManifest("m", len(data)), Budget()))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"size": 5}, "bytes, and 5 by the manifest list"),
        ({"deletes": True}, "of the content 0, which the manifest list does not announce"),
        ({"counts": {1: (2, None)}}, r"\(1, 3\) files and rows of the status 1, and \(2, None\)"),
        ({"counts": {1: (None, 4)}}, r"\(1, 3\) files and rows of the status 1, and \(None, 4\)"),
        ({"counts": {2: (1, 3)}}, r"\(0, 0\) files and rows of the status 2, and \(1, 3\)"),
    ],
)
def test_a_manifest_that_differs_from_its_list_is_refused(changes: dict[str, Any], problem: str) -> None:
    data = manifest(Written("a"))
    listed = ClientManifest("m", len(data), counts={1: (1, 3), 0: (0, 0), 2: (0, None)})
    assert [file.path for file in live_files_in(data, listed, Budget())] == ["a"]
    with pytest.raises(InvalidRequest, match=problem):
        list(live_files_in(data, replace(listed, **changes), Budget()))


def test_a_manifest_that_is_listed_twice_is_refused() -> None:
    entries = manifest_list(["m"])
    block = entries[entries.index(b"s" * 16) :]
    with pytest.raises(InvalidRequest, match="names the manifest m twice"):
        manifests_in(entries + block[16:], "l")


def test_a_manifest_is_no_manifest_list() -> None:
    with pytest.raises(InvalidRequest, match="without a valid field 500"):
        manifests_in(manifest(Written("a")), "m")
