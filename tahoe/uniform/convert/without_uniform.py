"""Tables without UniForm as the conversion sees them: as if UniForm were enabled, with ids for their columns.

Nothing here changes a table. With column mapping, columns have the ids that data files have too. Lists and maps need ids for their elements,
which only tables with IcebergCompat have; others are refused, since some readers take elements without an id for missing ones.

Without column mapping, a column is its name, and data files have no ids: readers find columns by the name mapping in the Iceberg metadata.
An id must never change, since manifests and older snapshots refer to it, so it is derived from the column's path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from tahoe.base.exceptions import Unsupported
from tahoe.protocol.actions import Action, Metadata
from tahoe.protocol.iceberg_compat import DELETES_PROPERTY, check_types, format_version
from tahoe.protocol.properties import TableProperties
from tahoe.schema.mapping import (
    ID_KEY,
    MAX_ID_KEY,
    NESTED_IDS_KEY,
    explode,
    nested_ids_of,
    nested_keys,
    transform_with_path,
    without_mapping,
)
from tahoe.schema.types import StructField, StructType
from tahoe.snapshot.snapshot import Snapshot

_UNIFORM = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    DELETES_PROPERTY: "position",
}
_CONFIGURED = ("delta.universalformat.", "delta.enableicebergcompat")
_V3 = "delta.enableIcebergCompatV3"
_LARGEST_ID = 2**31 - 1001  # the specification reserves the ids above


def with_uniform(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the metadata of `metadata_with_uniform`, for a conversion.

    Raises:
        InvalidRequest: Iceberg lacks the type of a column or cannot follow its widening, or elements have no ids.
        Unsupported: two columns would have the same id.
    """
    metadata = metadata_with_uniform(snapshot.metadata, is_mapped(snapshot))
    shown = snapshot.with_metadata(metadata)
    if not is_mapped(snapshot):
        _check_ids(shown)
    check_types(shown.config, format_version(shown.config.properties))
    return shown


def is_mapped(snapshot: Snapshot) -> bool:
    """Whether data files know columns by the physical names of column mapping."""
    return snapshot.config.column_mapping_mode != "none"


def actions_with_uniform(actions: Sequence[Action], mapped: bool) -> list[Action]:
    """Return the actions of a commit, with the metadata of `metadata_with_uniform`."""
    return [metadata_with_uniform(action, mapped) if isinstance(action, Metadata) else action for action in actions]


def metadata_with_uniform(metadata: Metadata, mapped: bool) -> Metadata:
    """Return the metadata with the properties of UniForm. Without column mapping, each column, element, key and value gets an id.

    Properties that configure UniForm are omitted: they may name catalogs, and these must not point to metadata beside the table.

    Args:
        mapped: whether column mapping is in force.
    """
    configuration = {
        name: value for name, value in metadata.configuration.items() if not name.lower().startswith(_CONFIGURED)
    } | _UNIFORM
    if TableProperties(metadata.configuration).get(_V3):
        configuration |= {_V3: "true", "delta.enableIcebergCompatV2": "false"}
    if mapped:
        return replace(metadata, configuration=configuration)
    configuration.pop(MAX_ID_KEY, None)
    schema = _with_ids(without_mapping(metadata.schema))
    return replace(metadata, schema_string=schema.to_json(), configuration=configuration)


def _with_ids(schema: StructType) -> StructType:
    """Return the schema with ids that follow from the paths of the columns."""

    def numbered(path: tuple[str, ...], column: StructField) -> StructField:
        names = {
            key: (*path, *key.removeprefix(f"{column.name}.").split(".")) for key in nested_keys(column.data_type, column.name)
        }
        nested = {key: _id_of(inner) for key, inner in names.items()}
        ids: dict[str, object] = {ID_KEY: _id_of(path), **({NESTED_IDS_KEY: nested} if nested else {})}
        return replace(column, metadata={**column.metadata, **ids})

    return transform_with_path(schema, numbered)


def _id_of(path: tuple[str, ...]) -> int:
    return int.from_bytes(sha256("\0".join(path).encode()).digest()[:8]) % _LARGEST_ID + 1


def _check_ids(snapshot: Snapshot) -> None:
    """Refuse two columns with one id: among a thousand columns, the chance is one in four thousand."""
    owners: dict[int, str] = {}
    for path, column in explode(snapshot.schema):
        name = ".".join(path)
        for number in (column.field_id or 0, *nested_ids_of(column).values()):
            other = owners.setdefault(number, name)
            if other != name or not 0 < number <= _LARGEST_ID:
                raise Unsupported(
                    f"Table {snapshot.store.url} cannot be shown as Iceberg: columns '{other}' and '{name}' get the same id, {number}. "
                    "Enable UniForm on the table.",
                    code="TAHOE_ICEBERG_COLUMN_IDS",
                    table=snapshot.store.url,
                    column=name,
                )
