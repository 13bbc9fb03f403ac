"""Size limits and merging of manifests, computed from counts alone.

Removing a file rewrites its manifest, and each commit writes the list of all manifests. So manifests are small, and grow only to avoid
having too many (`most_entries`); the many small manifests of small commits are merged now and then (`merges`). The cost of a small
commit therefore hardly grows with the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import isqrt

from tahoe.uniform.formats.manifests import Entry, ManifestFile

LEAST_ENTRIES = 256
"""The capacity of the smallest manifests, in files."""

MAX_SMALL = 32
"""If more manifests than this are less than half full, they are merged, at most twice as many at a time."""


def most_entries(files: int) -> int:
    """Return the capacity of manifests in a table of so many files.

    Large manifests are costly to rewrite; small ones make the list long. Near the square root both costs grow alike.
    """
    return max(LEAST_ENTRIES, isqrt(files) // 2)


def many_small(manifests: Sequence[ManifestFile], most: int) -> list[ManifestFile]:
    """Return the small manifests, or the oldest of them, if there are too many; else an empty list."""
    small = [manifest for manifest in manifests if manifest.live_files < most // 2]
    return small[-2 * MAX_SMALL :] if len(small) > MAX_SMALL else []


def merges(manifests: Sequence[ManifestFile], most: int) -> tuple[list[ManifestFile], list[list[ManifestFile]]]:
    """Return the manifests that stay unchanged, and the groups to merge, in the order in which they are written."""
    small = many_small(manifests, most)
    going = {manifest.path for manifest in small}
    groups: list[list[ManifestFile]] = []
    files = 0
    for manifest in small:
        if not groups or files + manifest.live_files > most:
            groups.append([])
            files = 0
        groups[-1].append(manifest)
        files += manifest.live_files
    return [manifest for manifest in manifests if manifest.path not in going], groups


def chunks(entries: Iterator[Entry], most: int) -> Iterator[list[Entry]]:
    """Yield the entries of one manifest after the other."""
    while chunk := list(islice(entries, most)):
        yield chunk
