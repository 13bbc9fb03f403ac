"""Tahoe's record of the Iceberg side, stored on the Delta side, where no Iceberg writer touches it.

The Iceberg metadata itself shows how far the conversion is. It cannot show that something was deleted: a metadata file, or a
catalog entry. So each conversion is recorded here after it is published; an outdated record is harmless.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.store.log_store import LogStore

NAME = "_delta_log/_uniform/state.json"
"""Under ``_delta_log`` and behind an underscore: neither Iceberg's orphan removal nor its purge looks there."""


@dataclass(frozen=True, slots=True)
class ConversionRecord:
    """The last conversion.

    Args:
        number: the number of its metadata file; -1 before the first conversion.
        catalogs: catalog name → URL of the metadata that the catalog pointed to.
        discarded: URLs of metadata by other writers that a repair has settled.
    """

    number: int = -1
    catalogs: Mapping[str, str] = field(default_factory=dict)
    discarded: frozenset[str] = frozenset()


def read_record(store: LogStore) -> ConversionRecord:
    """Return the record; an empty record if there is none. Raises `CorruptTable` if it is not as Tahoe wrote it."""
    try:
        content = json.loads(store.get(NAME))
        return ConversionRecord(int(content["number"]), dict(content["catalogs"]), frozenset(content["discarded"]))
    except NotFound:
        return ConversionRecord()
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTable(
            f"The file {store.url}/{NAME}, Tahoe's record of the UniForm conversion, is corrupt ({error}). Delete it, check the Iceberg "
            "side with table.uniform.status(), and run table.uniform.sync().",
            code="TAHOE_CORRUPT_ICEBERG_METADATA",
            table=store.url,
            file=NAME,
        ) from error


def write_record(store: LogStore, record: ConversionRecord) -> None:
    """Replace the record."""
    content = {"number": record.number, "catalogs": dict(record.catalogs), "discarded": sorted(record.discarded)}
    store.put(NAME, json.dumps(content, sort_keys=True).encode())
