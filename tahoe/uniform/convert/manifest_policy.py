"""Which manifests the next snapshot has, decided from numbers alone: how large they may be, and when small ones are merged.

Removing a file writes its manifest anew, and each commit writes the list of all manifests. So manifests are small, and larger ones only
where else there were too many (`most_entries`); many small ones, as small commits leave them, are merged now and then (`merges`). The cost
of a small commit therefore hardly grows with the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import isqrt

from tahoe.uniform.formats.manifests import Entry, ManifestFile

__all__ = ["LEAST_ENTRIES", "MAX_SMALL", "chunks", "many_small", "merges", "most_entries"]

LEAST_ENTRIES = 256
"""So many files a manifest may hold at least."""

MAX_SMALL = 32
"""More manifests than this that hold less than half of what they may are merged, twice as many at once at most."""


def most_entries(files: int) -> int:
    """How many files a manifest may hold in a table of so many.

    The larger manifests are, the dearer to write one anew; the smaller, the longer their list. Near the square root both grow alike.
    """
    return max(LEAST_ENTRIES, isqrt(files) // 2)


def many_small(manifests: Sequence[ManifestFile], most: int) -> list[ManifestFile]:
    """The small ones among the manifests, or the oldest of these, where they are too many; else none."""
    small = [manifest for manifest in manifests if manifest.live_files < most // 2]
    return small[-2 * MAX_SMALL :] if len(small) > MAX_SMALL else []


def merges(manifests: Sequence[ManifestFile], most: int) -> tuple[list[ManifestFile], list[list[ManifestFile]]]:
    """Which manifests stay as they are, and which become one: groups, in the order in which they are written."""
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
    """The entries of one manifest after the other."""
    while chunk := list(islice(entries, most)):
        yield chunk
