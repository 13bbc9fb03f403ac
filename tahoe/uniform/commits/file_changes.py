"""The files that a snapshot adds and removes: its live files compared with those of the snapshot that it changes.

Manifests that both snapshots have are not read, so the work grows with the change and not with the table. Pure but for `read`, which returns
the bytes of a manifest or manifest list below the table's root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tahoe.base.exceptions import InvalidRequest
from tahoe.uniform.commits.client_avro import Budget
from tahoe.uniform.commits.client_manifests import DATA, ClientFile, ClientManifest, live_files_in, manifests_in

ReadFile = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The difference between two snapshots.

    Args:
        added: data files that only the new snapshot has.
        removed: locations of data files that only the old snapshot has.
        deletes: delete files that only the new snapshot has.
        dropped_deletes: delete files that only the old snapshot has.
        manifests: manifests that only the new snapshot has.
    """

    added: tuple[ClientFile, ...] = ()
    removed: tuple[str, ...] = ()
    deletes: tuple[ClientFile, ...] = ()
    dropped_deletes: tuple[ClientFile, ...] = ()
    manifests: tuple[str, ...] = ()

    @property
    def only_adds(self) -> bool:
        """Whether data files are added and nothing else changes."""
        return not self.removed and not self.deletes and not self.dropped_deletes


def file_changes(old_list: str | None, new_list: str, read: ReadFile) -> FileChanges:
    """Return the changes from one snapshot to another.

    Args:
        old_list: the location of the old snapshot's manifest list; None for no snapshot.
        new_list: that of the new snapshot.

    Raises:
        InvalidRequest: a manifest cannot be read, or names a file twice.
        Unsupported: a file is encrypted.
    """
    old = {} if old_list is None else manifests_in(read(old_list), old_list)
    new = manifests_in(read(new_list), new_list)
    before = _live((each for path, each in old.items() if path not in new), read)
    after = _live((each for path, each in new.items() if path not in old), read)
    added = [file for key, file in after.items() if key not in before]
    gone = [file for key, file in before.items() if key not in after]
    return FileChanges(
        added=tuple(file for file in added if file.content == DATA),
        removed=tuple(file.path for file in gone if file.content == DATA),
        deletes=tuple(file for file in added if file.content != DATA),
        dropped_deletes=tuple(file for file in gone if file.content != DATA),
        manifests=tuple(path for path in new if path not in old),
    )


_MOST_FILES = 1_000_000
"""The maximum number of files in the manifests that two snapshots do not share."""

_Key = tuple[str, int | None]


def _live(manifests: Iterable[ClientManifest], read: ReadFile) -> dict[_Key, ClientFile]:
    """Return the live files by location, and by offset since a Puffin file has several vectors."""
    live: dict[_Key, ClientFile] = {}
    budget = Budget()
    for manifest in manifests:
        for file in live_files_in(read(manifest.path), manifest, budget):
            key = file.path, file.offset
            if key in live or len(live) == _MOST_FILES:
                problem = f"more than {_MOST_FILES:,} files" if key not in live else f"the file {file.path} twice"
                raise InvalidRequest(
                    f"The manifests of the snapshot name {problem}.", code="TAHOE_ICEBERG_MANIFEST", file=manifest.path
                )
            live[key] = file
    return live
