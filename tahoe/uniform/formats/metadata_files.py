"""The metadata files of a table: their location, their names, and the fingerprint by which Tahoe recognizes its own.

UniForm's Iceberg tables are read-only. Every metadata file that Tahoe writes contains a fingerprint of the rest of its content. A file
whose fingerprint is missing or wrong was written, or edited, by another writer; converting on top of it would mix that writer's rows into
the table or lose them, so conversion stops and the status reports it.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from tahoe.base.exceptions import CorruptTable, ForeignWriter
from tahoe.base.json_values import JsonMapping, JsonObject

FOLDER = "metadata"
"""The folder for all files of the table's Iceberg side."""

FINGERPRINT = "tahoe-fingerprint"
_METADATA = re.compile(r"v(\d+)\.metadata\.json")


def metadata_name(number: int) -> str:
    """Return the store name of a metadata file."""
    return f"{FOLDER}/v{number}.metadata.json"


def metadata_number(location: str) -> int | None:
    """Return the number of one of Tahoe's metadata files, by its URL or name; None for other files."""
    matched = _METADATA.fullmatch(location.rpartition("/")[2])
    return int(matched[1]) if matched else None


def metadata_bytes(metadata: JsonMapping) -> bytes:
    """Return the bytes of a metadata file, with its fingerprint among the properties."""
    properties = {**metadata["properties"], FINGERPRINT: _fingerprint(metadata)}
    return _canonical({**metadata, "properties": properties})


def read_metadata(data: bytes, location: str) -> JsonObject:
    """Return the metadata in a file from `metadata_bytes`.

    Raises:
        ForeignWriter: the file is not as Tahoe wrote it.
        CorruptTable: it is not a JSON object.
    """
    try:
        metadata: Any = json.loads(data)
    except ValueError as error:
        raise CorruptTable(
            f"The Iceberg metadata {location} is not valid JSON ({error}). Rebuild it: table.uniform.sync(rebuild=True).",
            code="TAHOE_CORRUPT_ICEBERG_METADATA",
            file=location,
        ) from error
    document: JsonObject = metadata if isinstance(metadata, dict) else {}
    properties = document.get("properties")
    if not isinstance(properties, dict) or properties.get(FINGERPRINT) != _fingerprint(document):
        raise ForeignWriter(
            f"The Iceberg metadata {location} was not written by Tahoe, or was changed since: another writer has committed to "
            "the Iceberg side of this Delta table, which is read-only. Its changes are not in the Delta table. Save the changes "
            "you need, then rebuild the Iceberg side: table.uniform.sync(rebuild=True).",
            file=location,
        )
    return document


def _fingerprint(metadata: JsonMapping) -> str:
    properties = {key: value for key, value in metadata["properties"].items() if key != FINGERPRINT}
    return hashlib.sha256(_canonical({**metadata, "properties": properties})).hexdigest()


def _canonical(value: JsonMapping) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
