"""The data manifests of a snapshot: manifests that a change touches are rewritten, all others are carried over.

manifests with removed files ──► rewritten without them             (found through the folder's index of paths)
too many small manifests ──────► merged, together with added files  (`manifest_policy.merges`)
all others ────────────────────► named by the new list unchanged
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tahoe.uniform.convert.manifest_draft import Counts, Draft, NewSnapshot
from tahoe.uniform.convert.manifest_folder import ManifestFolder
from tahoe.uniform.convert.manifest_policy import merges, most_entries
from tahoe.uniform.formats.manifests import ADDED, DataFile, Entry, ManifestFile
from tahoe.uniform.formats.metadata import Totals

__all__ = ["FileChanges", "next_manifests"]


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The data files that a snapshot adds and removes.

    Args:
        added: added files; may be long, and is read once, in pieces.
        num_added: the number of added files.
        removed: full paths of removed files; missing files are not an error.
    """

    added: Iterable[DataFile]
    num_added: int
    removed: frozenset[str] = frozenset()


def next_manifests(
    current: Sequence[ManifestFile], changes: FileChanges, snapshot: NewSnapshot, folder: ManifestFolder
) -> tuple[list[ManifestFile], Totals]:
    """Write the manifests of the next snapshot; return them with the snapshot's totals.

    Args:
        current: the manifests of the previous snapshot.
    """
    live = [manifest for manifest in current if manifest.live_files]
    most = most_entries(sum(manifest.live_files for manifest in live) + changes.num_added)
    touched = folder.containing(changes.removed, live, snapshot.spec) if changes.removed else {}
    carried_over: list[ManifestFile] = []
    written: list[ManifestFile] = []
    counts = Counts()
    for manifest in live:
        if manifest.path not in touched:
            carried_over.append(manifest)
            continue
        pieces, gone = folder.pieces(manifest, snapshot.spec, touched[manifest.path])
        if not gone:
            carried_over.append(manifest)
            continue
        draft = Draft()
        draft.carry(manifest, pieces, gone, folder.known_paths(manifest))
        draft.entries += [counts.gone(entry, snapshot) for entry in gone]
        written.append(folder.write(draft, snapshot, len(written)))
    unmerged, groups = merges(carried_over, most)
    for draft in _drafts(groups, _entries(changes.added, snapshot, counts), snapshot, folder, most):
        written.append(folder.write(draft, snapshot, len(written)))
    return [*written, *unmerged], counts.totals()


def _drafts(
    groups: Sequence[Sequence[ManifestFile]], added: Iterator[Entry], snapshot: NewSnapshot, folder: ManifestFolder, most: int
) -> Iterator[Draft]:
    """Yield the manifests into which groups of small ones are merged, the last filled up with added files."""
    draft = Draft()
    for group in groups:
        if draft.files:
            yield draft
        draft = Draft()
        for manifest in group:
            draft.carry(manifest, *folder.pieces(manifest, snapshot.spec), folder.known_paths(manifest))
    while True:
        draft.entries += islice(added, most - draft.files)
        if not draft.files:
            return
        yield draft
        draft = Draft()


def _entries(added: Iterable[DataFile], snapshot: NewSnapshot, counts: Counts) -> Iterator[Entry]:
    for file in added:
        counts.new(file)
        # Without a sequence number, readers take it from the manifest list.
        yield Entry(ADDED, snapshot.snapshot_id, file.sequence_number, None, file)
