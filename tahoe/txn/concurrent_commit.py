"""`ConcurrentCommit`: a commit that took the version that another writer tried, and its changes of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tahoe.base.lazy import cached_property
from tahoe.log.files.live_files import canonical_path
from tahoe.protocol.actions import Action, AddFile, CommitInfo, Metadata, Protocol, RemoveFile


@dataclass(frozen=True)
class ConcurrentCommit:
    """A commit that took the version that another writer tried."""

    version: int
    actions: Sequence[Action]

    @cached_property
    def info(self) -> CommitInfo:
        """Its `commitInfo`; an empty one if it has none."""
        return next((a for a in self.actions if isinstance(a, CommitInfo)), CommitInfo({}))

    @property
    def operation(self) -> str:
        """The operation's name, for messages."""
        return str(self.info.values.get("operation", "an unnamed operation"))

    @property
    def is_blind_append(self) -> bool:
        """Whether its writer recorded that it read nothing of the table."""
        return bool(self.info.values.get("isBlindAppend", False))

    @cached_property
    def protocol(self) -> Protocol | None:
        """The protocol that it sets, or None."""
        return next((a for a in self.actions if isinstance(a, Protocol)), None)

    @cached_property
    def metadata(self) -> Metadata | None:
        """The metadata that it sets, or None."""
        return next((a for a in self.actions if isinstance(a, Metadata)), None)

    @cached_property
    def adds(self) -> list[AddFile]:
        """The files that it adds."""
        return [a for a in self.actions if isinstance(a, AddFile)]

    @cached_property
    def removes(self) -> list[RemoveFile]:
        """The files that it removes."""
        return [a for a in self.actions if isinstance(a, RemoveFile)]

    @property
    def only_rearranges(self) -> bool:
        """Whether it leaves all rows unchanged: readers of the previous version have seen the rows of its added files."""
        return not any(add.data_change for add in self.adds) and not any(remove.data_change for remove in self.removes)

    def vector_changes(self, root_url: str) -> Mapping[str, tuple[RemoveFile, AddFile]]:
        """Return the remaining files with a changed deletion vector, by canonical path: the tombstone, and the new add action."""
        removed = {canonical_path(remove.path, root_url): remove for remove in self.removes}
        added = {canonical_path(add.path, root_url): add for add in self.adds}
        return {
            path: (removed[path], add)
            for path, add in added.items()
            if path in removed and _vector_id(removed[path]) != _vector_id(add)
        }


def _vector_id(action: AddFile | RemoveFile) -> str | None:
    return action.key[1]
