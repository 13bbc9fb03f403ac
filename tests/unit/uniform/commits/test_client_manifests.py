"""Manifests and manifest lists of clients as values."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.uniform.commits.client_manifests import ClientFile, ClientManifest, live_files_in, manifests_in
from tests.unit.uniform.commits.client_files import Written, manifest, manifest_list


def test_live_files_are_those_that_are_not_deleted() -> None:
    data = manifest(Written("a", status=0), Written("b"), Written("c", status=2))
    assert list(live_files_in(data, "m")) == [ClientFile(path, 0, "PARQUET", 3, 9) for path in ("a", "b")]


def test_a_manifest_list_names_manifests_with_their_content() -> None:
    data = manifest_list({"m0": 0, "m1": 1})
    assert manifests_in(data, "l") == [ClientManifest("m0", 5), ClientManifest("m1", 5, deletes=True)]


@pytest.mark.parametrize(("status", "content"), [(3, 0), (-1, 0), (1, 3)])
def test_an_invalid_entry_is_refused(status: int, content: int) -> None:
    with pytest.raises(InvalidRequest, match="The manifest m has an entry without a valid field"):
        list(live_files_in(manifest(Written("a", status=status, content=content)), "m"))


def test_a_manifest_is_no_manifest_list() -> None:
    with pytest.raises(InvalidRequest, match="without a valid field 500"):
        manifests_in(manifest(Written("a")), "m")
