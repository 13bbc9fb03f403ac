"""The metadata files of a table: where they lie, how they are called, and the seal by which Tahoe knows its own.

UniForm's Iceberg tables are for reading only. Every metadata file that Tahoe writes carries a fingerprint of all the rest of it. A file
whose fingerprint is missing or wrong was written, or edited, by another writer; converting on top of it would mix that writer's rows into
the table or lose them, so conversion stops and the status says so.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from tahoe.exceptions import CorruptTable, ForeignWriter

__all__ = ["FINGERPRINT", "FOLDER", "metadata_name", "metadata_number", "open_metadata", "seal_metadata"]

FOLDER = "metadata"
"""The table's folder of all files of its Iceberg side."""

FINGERPRINT = "tahoe-fingerprint"
_METADATA = re.compile(r"v(\d+)\.metadata\.json")


def metadata_name(number: int) -> str:
    """The store name of a metadata file."""
    return f"{FOLDER}/v{number}.metadata.json"


def metadata_number(location: str) -> int | None:
    """The number of a metadata file of ours, by its URL or name; None for another kind of file."""
    matched = _METADATA.fullmatch(location.rpartition("/")[2])
    return int(matched[1]) if matched else None


def seal_metadata(metadata: Mapping[str, Any]) -> bytes:
    """The bytes of a metadata file, with its fingerprint among the properties."""
    properties = {**metadata["properties"], FINGERPRINT: _fingerprint(metadata)}
    return _canonical({**metadata, "properties": properties})


def open_metadata(data: bytes, location: str) -> dict[str, Any]:
    """The metadata in a file that `seal_metadata` made.

    Raises:
        ForeignWriter: the file is not as Tahoe wrote it.
        CorruptTable: it is no JSON object.
    """
    try:
        metadata: Any = json.loads(data)
    except ValueError as error:
        raise CorruptTable(
            f"The Iceberg metadata {location} is not valid JSON ({error}). Rebuild it: table.uniform.sync(rebuild=True).",
            code="TAHOE_CORRUPT_ICEBERG_METADATA",
            file=location,
        ) from error
    document: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    properties = document.get("properties")
    if not isinstance(properties, dict) or properties.get(FINGERPRINT) != _fingerprint(document):
        raise ForeignWriter(
            f"The Iceberg metadata {location} was not written by Tahoe, or was changed since: another writer has committed to "
            "the Iceberg side of this Delta table, which is for reading only. Its changes are not in the Delta table. Save what "
            "you need of them, then take the Iceberg side back: table.uniform.sync(rebuild=True).",
            file=location,
        )
    return document


def _fingerprint(metadata: Mapping[str, Any]) -> str:
    properties = {key: value for key, value in metadata["properties"].items() if key != FINGERPRINT}
    return hashlib.sha256(_canonical({**metadata, "properties": properties})).hexdigest()


def _canonical(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
