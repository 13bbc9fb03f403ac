"""What a table knows of the streams that read it: how far each had come when it was last heard of.

A file for each, ``_delta_log/_tahoe_streams/<digest of its place>.json``, which the reader itself writes now and then. Nothing is decided by
it: VACUUM tells of streams whose files go. A stream that may only read leaves none.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tahoe.exceptions import NotFound, StorageFailure
from tahoe.store.log_store import LogStore

__all__ = ["STREAMS_FOLDER", "StreamRecord", "record_stream", "streams_of"]

STREAMS_FOLDER = "_delta_log/_tahoe_streams"
logger = logging.getLogger(__name__)

_CREDENTIALS = re.compile(r"(?<=//)[^/@]*@")


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """How far a stream had come.

    Args:
        name: of the record's file.
        checkpoint: where the query keeps its place.
        version: the oldest version that it has not read whole.
        modified_ms: when it said so, by the clock of the storage.
    """

    name: str
    checkpoint: str
    version: int
    modified_ms: int


def record_stream(store: LogStore, checkpoint: str, version: int) -> None:
    """Note how far a stream has come. What storage does not take is let go: the stream reads all the same."""
    place = _CREDENTIALS.sub("", checkpoint)
    content = json.dumps({"checkpoint": place, "version": version}).encode()
    try:
        store.put(f"{STREAMS_FOLDER}/{hashlib.sha256(place.encode()).hexdigest()[:32]}.json", content)
    except StorageFailure as error:
        logger.debug("no record of the stream %s in table %s: %s", place, store.url, error)


def streams_of(store: LogStore) -> Iterator[StreamRecord]:
    """The streams that a table knows of; a record that cannot be read says nothing."""
    for entry in store.list_from(STREAMS_FOLDER):
        try:
            value = json.loads(store.get(entry.name))
            yield StreamRecord(entry.name, str(value["checkpoint"]), int(value["version"]), entry.modified_ms)
        except (NotFound, ValueError, KeyError, TypeError) as error:
            logger.debug("the record %s of a stream in table %s cannot be read: %s", entry.name, store.url, error)
