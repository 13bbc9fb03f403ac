"""`Winner`: a commit that took the version that another wanted, and what it did to files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tahoe.lazy import cached_property
from tahoe.log.files.live_files import canonical_path
from tahoe.protocol.actions import Action, AddFile, CommitInfo, Metadata, Protocol, RemoveFile

__all__ = ["Winner"]


@dataclass(frozen=True)
class Winner:
    """A commit that took the version that another wanted."""

    version: int
    actions: tuple[Action, ...]

    @cached_property
    def info(self) -> CommitInfo:
        """Its `commitInfo`; an empty one where it has none."""
        return next((a for a in self.actions if isinstance(a, CommitInfo)), CommitInfo({}))

    @property
    def operation(self) -> str:
        """The operation's name, for messages."""
        return str(self.info.values.get("operation", "an unnamed operation"))

    @property
    def is_blind_append(self) -> bool:
        """Whether its writer says that it read nothing of the table."""
        return bool(self.info.values.get("isBlindAppend", False))

    @cached_property
    def protocol(self) -> Protocol | None:
        """The protocol that it brought; None for none."""
        return next((a for a in self.actions if isinstance(a, Protocol)), None)

    @cached_property
    def metadata(self) -> Metadata | None:
        """The metadata that it brought; None for none."""
        return next((a for a in self.actions if isinstance(a, Metadata)), None)

    @cached_property
    def adds(self) -> list[AddFile]:
        """The files that it added."""
        return [a for a in self.actions if isinstance(a, AddFile)]

    @cached_property
    def removes(self) -> list[RemoveFile]:
        """The files that it removed."""
        return [a for a in self.actions if isinstance(a, RemoveFile)]

    @property
    def only_rearranges(self) -> bool:
        """Whether its files hold the same rows as before it: what it added, readers of the version before it have seen."""
        return not any(add.data_change for add in self.adds) and not any(remove.data_change for remove in self.removes)

    def vector_changes(self, root_url: str) -> Mapping[str, tuple[RemoveFile, AddFile]]:
        """The files that stayed and got another deletion vector, by canonical path: the tombstone, and what followed it."""
        removed = {canonical_path(remove.path, root_url): remove for remove in self.removes}
        added = {canonical_path(add.path, root_url): add for add in self.adds}
        return {
            path: (removed[path], add)
            for path, add in added.items()
            if path in removed and _vector_id(removed[path]) != _vector_id(add)
        }


def _vector_id(action: AddFile | RemoveFile) -> str | None:
    return action.key[1]
