"""Intents: small files by which a writer that lost several races asks the other writers to wait for it.

All information of an intent is in its name; its contents are never read, and no commit depends on it: a writer that does not know or see
it commits as usual. Names begin with an underscore, so that a listing from any version on returns them after the commits, and readers and
VACUUM ignore them like ``_last_checkpoint``.

On object stores, where a listing is a request, an intent is in the log's folder, and is seen in listings that are made anyway. On local
disks, where a listing walks through the folder, intents have a small folder of their own.

The intents known to this process are kept here by the table's URL, so that its threads see each other's without storage.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from tahoe.log.files.paths import LOG_FOLDER
from tahoe.store.log_store import Entry, LogStore

PREFIX = f"{LOG_FOLDER}/_tahoe_intent."
FOLDER = f"{LOG_FOLDER}/_tahoe_intents"


@dataclass(frozen=True, slots=True)
class Intent:
    """One intent.

    Args:
        modified_ms: the time of writing, by the store's clock; None for an intent of this process that no listing has returned yet.
        is_of_this_process: whether a thread of this process wrote it.
    """

    name: str
    modified_ms: int | None
    is_of_this_process: bool = False

    @property
    def order(self) -> tuple[bool, int, str]:
        """The sort key of priority: by age, then by name. It is the same for all writers that see the same files."""
        return (self.modified_ms is None, self.modified_ms or 0, self.name)


SLOW = ".slow"
"""The end of the id of a writer that takes seconds to try again, as an Iceberg client does."""


def intent_name(store: LogStore, transaction_id: str) -> str:
    """Return the name of a transaction's intent in this store."""
    return f"{FOLDER}/{transaction_id}" if store.asks_cheaply else f"{PREFIX}{transaction_id}"


def notice(store: LogStore, entries: Iterable[Entry]) -> None:
    """Record the intents in a listing of the log's end, or of the folder of intents, and forget those that it lacks."""
    listed = [entry for entry in entries if entry.name.startswith((PREFIX, f"{FOLDER}/"))]
    if not listed and store.url not in _known:
        return
    with _lock:
        previous = _known.get(store.url, {})
        mine = {name: intent for name, intent in previous.items() if intent.is_of_this_process}
        intents = {entry.name: Intent(entry.name, entry.modified_ms, entry.name in mine) for entry in listed[:_MOST]}
        _set(store.url, {**mine, **intents})


def announce(url: str, name: str) -> None:
    """Record an intent of a thread of this process."""
    with _lock:
        _set(url, {**_known.get(url, {}), name: Intent(name, None, True)})


def forget(url: str, name: str) -> None:
    """Remove a deleted intent from the record."""
    with _lock:
        _set(url, {intent_name: intent for intent_name, intent in _known.get(url, {}).items() if intent_name != name})


def standing(url: str) -> list[Intent]:
    """Return the recorded intents of a table, in the order of their priority."""
    return sorted(_known.get(url, {}).values(), key=lambda intent: intent.order)


# More intents than this are leftovers, not waiting writers.
_MOST = 100

_lock = threading.Lock()
_known: dict[str, dict[str, Intent]] = {}


def _set(url: str, intents: dict[str, Intent]) -> None:
    if intents:
        _known[url] = intents
    else:
        _known.pop(url, None)
