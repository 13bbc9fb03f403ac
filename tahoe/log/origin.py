"""Which file of the log an error is about, for errors of those who have actions in hand and no longer know where they came from.

The state of a table is put together from many files, and what is wrong with it shows when they are no longer at hand. So the files are
read again, newest first, when an error is about to be told, and never before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tahoe.exceptions import TahoeError
from tahoe.log.files.commits import parse_actions
from tahoe.log.files.paths import LOG_FOLDER
from tahoe.log.segment import LogSegment
from tahoe.protocol.actions import Action, AddFile, Metadata, Protocol
from tahoe.store.log_store import LogStore

__all__ = ["located_in_log"]

E = TypeVar("E", bound=TahoeError)


def located_in_log(error: E, store: LogStore, segment: LogSegment) -> E:
    """This very error, told also with the table, the version, and the file of the log that holds what it is about.

    Args:
        error: of a live file where its facts have the ``path`` of one, or its ``file``, as the log spells it; of the protocol where they
            have ``action`` = ``protocol``; else of the metadata. One that names a file of the log already is left as it is.
        segment: of the version that was read.
    """
    if f"{LOG_FOLDER}/" in error.message:
        return error
    return error.located(table=store.url, version=segment.version, file=_origin(store, segment, _is_meant(error.facts)))


def _is_meant(facts: dict[str, Any]) -> Callable[[Action], bool]:
    path = facts.get("path", facts.get("file"))
    if path is not None:
        return lambda action: isinstance(action, AddFile) and action.path == path
    kind = Protocol if facts.get("action") == "protocol" else Metadata
    return lambda action: isinstance(action, kind)


def _origin(store: LogStore, segment: LogSegment, is_meant: Callable[[Action], bool]) -> str | None:
    """The newest commit that holds such an action; else the checkpoint; None where there is neither."""
    for file in reversed(segment.tail() or ()):
        try:
            if any(is_meant(action) for _, action in parse_actions(file.entry.name, store.get(file.entry.name), store.url)):
                return file.entry.name
        except TahoeError:
            continue  # what is being told comes first
    return None if segment.checkpoint is None else segment.checkpoint.names[0]
