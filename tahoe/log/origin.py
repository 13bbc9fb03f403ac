"""Finds the file of the log that an error is about, for code that has actions without their files.

The state of a table is combined from many files, and its faults show up after they were read. The files are therefore read again, newest
first, but only when an error is about to be raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tahoe.base.exceptions import TahoeError
from tahoe.log.files.commits import parse_actions
from tahoe.log.files.paths import LOG_FOLDER
from tahoe.log.segment import LogSegment
from tahoe.protocol.actions import Action, AddFile, Metadata, Protocol
from tahoe.store.log_store import LogStore

E = TypeVar("E", bound=TahoeError)


def located_in_log(error: E, store: LogStore, segment: LogSegment) -> E:
    """Add the table, the version and the log file with the faulty action to the error; return the same error.

    Args:
        error: about a live file if its facts have the ``path`` or the ``file``, spelled as in the log; about the protocol if they have
            ``action`` = ``protocol``; else about the metadata. An error that already names a file of the log is not changed.
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
    """Return the newest commit with such an action, else the checkpoint; None if there is neither."""
    for file in reversed(segment.tail() or ()):
        try:
            if any(is_meant(action) for _, action in parse_actions(file.entry.name, store.get(file.entry.name), store.url)):
                return file.entry.name
        except TahoeError:
            continue  # the original error takes precedence
    return None if segment.checkpoint is None else segment.checkpoint.names[0]
