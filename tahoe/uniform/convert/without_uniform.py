"""Tables without UniForm as the conversion sees them: as if UniForm were enabled, with ids for their columns.

Nothing here changes a table. With column mapping, columns have the ids that data files have too. Lists and maps need ids for their elements,
which only tables with IcebergCompat have; others are refused, since some readers take elements without an id for missing ones.

Without column mapping, a column is its name, and data files have no ids: readers find columns by the name mapping in the Iceberg metadata.
An id must never change, since manifests and older snapshots refer to it, so it is derived from the column's path.

The Iceberg metadata is in a folder outside of the tables. Each table has a folder there, whose name follows from the table's URL and id, and
from whether column mapping is in force: a table that was deleted and created again, or whose columns get other ids, is converted from the
beginning.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from tahoe.base.clock import Clock
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.log.files.commits import read_commit
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
from tahoe.store.location import local_path, table_url
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.uniform.convert.conversion import DeltaSide

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


# -- the folder of the metadata ------------------------------------------------------------------------------------------------------


class MetadataFolder:
    """The folder for the metadata of all tables that are converted beside themselves.

    Args:
        path: a folder or URL outside of the warehouse; Iceberg clients must be able to read it.
        warehouse_url: the URL of the folder above the tables.
        storage_options: options for the object store.

    Raises:
        InvalidRequest: the folder is in the warehouse.
    """

    def __init__(
        self, path: str | os.PathLike[str], warehouse_url: str, storage_options: Mapping[str, str] | None = None
    ) -> None:
        self.url = table_url(path)
        self._options = storage_options
        if f"{_resolved(self.url)}/".startswith(f"{_resolved(warehouse_url)}/"):
            raise InvalidRequest(
                f"The folder for converted metadata, {self.url}, is in the warehouse {warehouse_url}, which the server does not change. "
                "Choose a folder outside of it.",
                code="TAHOE_CACHE_IN_WAREHOUSE",
                path=self.url,
            )

    def delta_side(self, store: LogStore, snapshot: Snapshot, read: Callable[[int | None], Snapshot], clock: Clock) -> DeltaSide:
        """Return the Delta side of a table without UniForm, for conversions to this folder.

        Args:
            store: the table's store.
            snapshot: a version of the table.
            read: returns a version; None is the newest.
        """
        mapped = is_mapped(snapshot)
        identity = json.dumps([store.url, snapshot.metadata.id, mapped])
        name = sha256(identity.encode()).hexdigest()[:32]

        def snapshot_at(version: int | None = None) -> Snapshot:
            return with_uniform(read(version))

        def actions(version: int) -> list[Action]:
            return actions_with_uniform(read_commit(store, version), mapped)

        metadata_store = open_store(f"{self.url}/{name}", self._options)
        return DeltaSide(store, snapshot_at, actions, clock, metadata_store)


def _resolved(url: str) -> str:
    """Return a URL without symbolic links, if it is local."""
    path = local_path(url)
    return url if path is None else os.path.realpath(path)
