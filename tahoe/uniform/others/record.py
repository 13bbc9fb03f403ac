"""What Tahoe notes about a table's Iceberg side, on the Delta side of it, where no Iceberg writer comes.

The Iceberg side shows by itself how far it is. What it cannot show is that something is missing: metadata that was deleted, a catalog
entry that was dropped. For that alone the last conversion is noted here, after it was published; an older note is harmless.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tahoe.exceptions import CorruptTable, NotFound
from tahoe.store.log_store import LogStore

__all__ = ["NAME", "ConversionRecord", "read_record", "write_record"]

NAME = "_delta_log/_uniform/state.json"
"""Below ``_delta_log`` and behind an underscore: neither Iceberg's removal of orphans nor its purge looks there."""


@dataclass(frozen=True, slots=True)
class ConversionRecord:
    """The last conversion.

    Args:
        number: of its metadata file; -1 before the first.
        catalogs: name → URL of the metadata that it pointed to.
        discarded: URLs of metadata that others wrote and that a repair has dealt with.
    """

    number: int = -1
    catalogs: Mapping[str, str] = field(default_factory=dict)
    discarded: frozenset[str] = frozenset()


def read_record(store: LogStore) -> ConversionRecord:
    """The record; an empty one where there is none. Raises `CorruptTable` where it is not as Tahoe wrote it."""
    try:
        content = json.loads(store.get(NAME))
        return ConversionRecord(int(content["number"]), dict(content["catalogs"]), frozenset(content["discarded"]))
    except NotFound:
        return ConversionRecord()
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTable(
            f"The file {store.url}/{NAME}, in which Tahoe notes how far UniForm is, is damaged ({error}). Delete it, look at the Iceberg "
            "side with table.uniform.status(), and run table.uniform.sync().",
            code="TAHOE_CORRUPT_ICEBERG_METADATA",
            table=store.url,
            file=NAME,
        ) from error


def write_record(store: LogStore, record: ConversionRecord) -> None:
    """Replace the record."""
    content = {"number": record.number, "catalogs": dict(record.catalogs), "discarded": sorted(record.discarded)}
    store.put(NAME, json.dumps(content, sort_keys=True).encode())
