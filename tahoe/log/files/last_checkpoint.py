"""``_last_checkpoint``: where a recent checkpoint is (PROTOCOL.md, "Last Checkpoint File"). A hint, never the truth.

A missing or damaged hint costs a longer listing. A good one also says how large its checkpoint is, which unmasks a checkpoint
that was written short.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tahoe.base.exceptions import NotFound
from tahoe.base.log_fields import about
from tahoe.log.files.paths import LAST_CHECKPOINT
from tahoe.store.log_store import LogStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TopLevel:
    """The file of a V2 checkpoint that names its sidecars.

    Args:
        path: its file name.
        modification_time: in milliseconds since the epoch.
    """

    path: str
    size_in_bytes: int
    modification_time: int


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The contents of the hint, which describe one checkpoint.

    Args:
        version: the table version of the checkpoint.
        size: the number of its actions (rows); for a V2 checkpoint, those of its sidecars included.
        parts: the number of parts of a multi-part checkpoint.
        size_in_bytes: of all its files.
        num_of_add_files: the number of its live files.
        footer_crc32: for a classic checkpoint that Tahoe wrote, the CRC-32 of its Parquet footer: the only part of such a file without a
            checksum of its own.
        checksummed: whether the hint has a checksum and it is correct.
        v2: the top level of a V2 checkpoint, as delta-spark records it in the hint; None if the hint lacks it.
    """

    version: int
    size: int
    parts: int | None = None
    size_in_bytes: int | None = None
    num_of_add_files: int | None = None
    footer_crc32: int | None = None
    checksummed: bool = False
    v2: TopLevel | None = None


def read_last_checkpoint(store: LogStore) -> LastCheckpoint | None:
    """The hint; None where there is none or it is damaged (which is logged)."""
    try:
        data = store.get(LAST_CHECKPOINT)
    except NotFound:
        return None
    try:
        return parse_last_checkpoint(data)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        logger.warning("%s/%s is damaged and was not used: %s", store.url, LAST_CHECKPOINT, error, extra=about(store.url))
        return None


def parse_last_checkpoint(data: bytes) -> LastCheckpoint:
    """Raises ValueError, KeyError, TypeError where the text is no valid hint or its checksum is wrong."""
    value = json.loads(data, object_pairs_hook=_without_duplicates)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    stated = value.get("checksum")
    if stated is not None and stated != checksum_of_json(value):
        raise ValueError("its checksum does not fit its content")
    return LastCheckpoint(
        version=count_of(value["version"]),
        size=count_of(value["size"]),
        parts=_count_or_none(value.get("parts")),
        size_in_bytes=_count_or_none(value.get("sizeInBytes")),
        num_of_add_files=_count_or_none(value.get("numOfAddFiles")),
        footer_crc32=_count_or_none((value.get("tags") or {}).get(_FOOTER_TAG), text=True),
        checksummed=stated is not None,
        v2=_top_level(value.get("v2Checkpoint")),
    )


def publish(store: LogStore, hint: LastCheckpoint) -> None:
    """Make it the table's hint, unless that names a newer checkpoint."""
    current = read_last_checkpoint(store)
    if current is None or current.version <= hint.version:
        write_last_checkpoint(store, hint)


def write_last_checkpoint(store: LogStore, hint: LastCheckpoint) -> None:
    """Replace the hint, with its checksum."""
    value: dict[str, Any] = {"version": hint.version, "size": hint.size}
    for name, number in (("parts", hint.parts), ("sizeInBytes", hint.size_in_bytes), ("numOfAddFiles", hint.num_of_add_files)):
        if number is not None:
            value[name] = number
    if hint.v2 is not None:
        top = hint.v2
        value["v2Checkpoint"] = {
            "path": top.path,
            "sizeInBytes": top.size_in_bytes,
            "modificationTime": top.modification_time,
        }
    if hint.footer_crc32 is not None:
        value["tags"] = {_FOOTER_TAG: str(hint.footer_crc32)}
    value["checksum"] = checksum_of_json(value)
    store.put(LAST_CHECKPOINT, json.dumps(value, separators=(",", ":")).encode())


def checksum_of_json(value: Mapping[str, object]) -> str:
    """The MD5 of the canonical form (PROTOCOL.md, "JSON checksum") without ``checksum`` itself, as 32 hexadecimal digits."""
    return hashlib.md5(canonical_json(value).encode(), usedforsecurity=False).hexdigest()


def canonical_json(value: Mapping[str, object]) -> str:
    """The canonical form that the checksum is made of."""
    rest = {name: member for name, member in value.items() if name != "checksum"}
    pairs = sorted((path.encode(), path, text) for path, text in _canonical(rest))
    return ",".join(f"{path}={text}" for _, path, text in pairs)


_FOOTER_TAG = "tahoe.footerCrc32"


def _canonical(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    before = f"{path}+" if path else ""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from _canonical(member, f"{before}{_quoted(name)}")
    elif isinstance(value, list):
        for position, member in enumerate(value):
            yield from _canonical(member, f"{before}{position}")
    else:
        yield path, _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a member occurs twice")
    return value


def _top_level(value: Any) -> TopLevel | None:
    if value is None:
        return None
    if not isinstance(value["path"], str):
        raise ValueError("the path of its V2 checkpoint is no text")
    return TopLevel(value["path"], count_of(value["sizeInBytes"]), count_of(value["modificationTime"]))


def count_of(value: object) -> int:
    """Return a count in a JSON document. Raises `ValueError` for any other value."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _count_or_none(value: Any, *, text: bool = False) -> int | None:
    return None if value is None else count_of(int(value) if text else value)
