"""A table's records of the streams that read it, each with the stream's last reported progress.

Each record is a file, ``_delta_log/_tahoe_streams/<digest of its checkpoint>.json``, which the reader itself writes now and then. The
records only inform: VACUUM reports streams whose files it deletes. A stream without write access leaves none.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tahoe.base.exceptions import NotFound, StorageFailure
from tahoe.store.log_store import LogStore

STREAMS_FOLDER = "_delta_log/_tahoe_streams"
logger = logging.getLogger(__name__)

_CREDENTIALS = re.compile(r"(?<=//)[^/@]*@")


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """The progress of a stream.

    Args:
        name: the name of the record's file.
        checkpoint: the query's checkpoint location.
        version: the oldest version that it has not completely read.
        modified_ms: the time of the record, by the storage's clock.
    """

    name: str
    checkpoint: str
    version: int
    modified_ms: int


def record_stream(store: LogStore, checkpoint: str, version: int) -> None:
    """Record a stream's progress. A storage failure is logged only: the stream can read nevertheless."""
    location = _CREDENTIALS.sub("", checkpoint)
    content = json.dumps({"checkpoint": location, "version": version}).encode()
    try:
        store.put(f"{STREAMS_FOLDER}/{hashlib.sha256(location.encode()).hexdigest()[:32]}.json", content)
    except StorageFailure as error:
        logger.debug("no record of the stream %s in table %s: %s", location, store.url, error)


def streams_of(store: LogStore) -> Iterator[StreamRecord]:
    """Yield the streams recorded in a table, skipping unreadable records."""
    for entry in store.list_from(STREAMS_FOLDER):
        try:
            value = json.loads(store.get(entry.name))
            yield StreamRecord(entry.name, str(value["checkpoint"]), int(value["version"]), entry.modified_ms)
        except (NotFound, ValueError, KeyError, TypeError) as error:
            logger.debug("the record %s of a stream in table %s cannot be read: %s", entry.name, store.url, error)
