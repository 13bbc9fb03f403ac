"""Unreferenced files of the Iceberg side: files of expired snapshots, and files left behind by a crash.

Data files are never among them: they belong to the Delta table, and VACUUM deletes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tahoe.base.exceptions import NotFound
from tahoe.store.log_store import LogStore
from tahoe.uniform.convert.manifest_folder import ManifestFolder
from tahoe.uniform.formats.manifest_schema import DATA
from tahoe.uniform.formats.manifests import ManifestFile
from tahoe.uniform.formats.metadata_files import FOLDER

__all__ = ["GRACE_MS", "orphans", "unreferenced"]

GRACE_MS = 24 * 60 * 60 * 1000
"""Minimum age of an orphan: a conversion in progress has files that nothing references yet."""

_OURS = re.compile(r"(m\d+-\d+-|d\d+-\d+-|snap-\d+-|deletes\d+-|dv\d+-)[0-9a-f]+\.(avro|parquet|puffin)")


def unreferenced(folder: ManifestFolder, old: Sequence[Mapping[str, Any]], document: Mapping[str, Any]) -> list[str]:
    """Return the URLs of manifest lists, manifests and delete files that only expired snapshots reference.

    History is linear, and a file that a snapshot drops never comes back. So a file that the oldest retained snapshot does not reference
    is referenced by no retained snapshot.

    Args:
        old: the expired snapshots, oldest first.
        document: the document with the retained snapshots.
    """
    if not old:
        return []
    retained = folder.read_list(document["snapshots"][0]["manifest-list"])
    retained_paths = {manifest.path for manifest in retained}
    garbage: dict[str, None] = {}
    gone: dict[str, ManifestFile] = {}
    all_along: set[str] = set()
    for position, snapshot in enumerate(old):
        try:
            manifests = folder.read_list(snapshot["manifest-list"])
        except NotFound:  # deleted by an earlier attempt
            continue
        if position == 0:
            all_along = {manifest.path for manifest in manifests}
        gone.update({manifest.path: manifest for manifest in manifests if manifest.path not in retained_paths})
        garbage[snapshot["manifest-list"]] = None
    # A delete file still in use has moved to a manifest younger than the first of the expired snapshots.
    dropped = _delete_files(folder, gone.values())
    if dropped:
        dropped -= _delete_files(folder, (manifest for manifest in retained if manifest.path not in all_along))
    return [*garbage, *gone, *sorted(dropped)]


def orphans(store: LogStore, folder: ManifestFolder, document: Mapping[str, Any], now_ms: int) -> list[str]:
    """Return the names of files in ``metadata`` that Tahoe wrote, that no snapshot references, and that are older than `GRACE_MS`.

    Reads every manifest list, and every delete manifest.
    """
    old = [
        entry
        for entry in store.list_from(FOLDER)
        if entry.modified_ms < now_ms - GRACE_MS and _OURS.fullmatch(entry.name.removeprefix(f"{FOLDER}/"))
    ]
    if not old:
        return []
    lists = [snapshot["manifest-list"] for snapshot in document["snapshots"]]
    manifests = {manifest.path: manifest for url in lists for manifest in folder.read_list(url)}
    named = {*lists, *manifests, *_delete_files(folder, manifests.values())}
    return [entry.name for entry in old if folder.url(entry.name) not in named]


def _delete_files(folder: ManifestFolder, manifests: Iterable[ManifestFile]) -> set[str]:
    """Return the delete files of the live entries in these manifests."""
    urls: set[str] = set()
    for manifest in manifests:
        if manifest.content != DATA:
            with suppress(NotFound):  # deleted by an earlier attempt
                urls |= folder.delete_files_of(manifest)
    return urls
