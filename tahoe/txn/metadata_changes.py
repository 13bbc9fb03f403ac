"""Metadata changes onto which an earlier prepared commit may be rebased.

The list is the reference's: changes that do not affect already written data files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tahoe.protocol.actions import Metadata
from tahoe.protocol.column_values.identity import without_marks
from tahoe.protocol.features import Feature
from tahoe.protocol.properties import TableProperties
from tahoe.protocol.row_tracking import ENABLED, MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType, schema_from_json

_MAPPING_KEYS = ("delta.columnMapping.id", "delta.columnMapping.physicalName", "delta.columnMapping.nested.ids")


def keeps_written_files_valid(before: Metadata, after: Metadata, features: frozenset[str]) -> bool:
    """Whether data files written for metadata `before` are valid with metadata `after`.

    Args:
        features: the table's features with `after`.
    """
    same_otherwise = replace(after, configuration=before.configuration, schema_string=before.schema_string) == before
    return (
        same_otherwise
        and _configuration_may_change(before.configuration, after.configuration, features)
        and (before.schema_string == after.schema_string or _only_moved_marks(before, after) or _only_got_mapped(before, after))
    )


def enables_row_tracking(before: Metadata, after: Metadata) -> bool:
    """Whether a metadata change enables row tracking."""
    return bool(TableProperties(after.configuration).get(ENABLED)) and not TableProperties(before.configuration).get(ENABLED)


def _configuration_may_change(before: Mapping[str, str], after: Mapping[str, str], features: frozenset[str]) -> bool:
    if not before.keys() <= after.keys():
        return False
    changed = {key for key, value in after.items() if before.get(key) != value}
    return all(key in _ALLOWED and _ALLOWED[key](before, after, features) for key in changed)


_Rule = Callable[[Mapping[str, str], Mapping[str, str], frozenset[str]], bool]


def _turned_on(key: str, feature: str) -> _Rule:
    return lambda before, after, features: feature in features and after[key].lower() == "true"


def _row_tracking_is_on(before: Mapping[str, str], after: Mapping[str, str], features: frozenset[str]) -> bool:
    return bool(TableProperties(after).get(ENABLED))


def _newly_set(key: str) -> _Rule:
    return lambda before, after, features: key not in before


def _mapped_by_name(before: Mapping[str, str], after: Mapping[str, str], features: frozenset[str]) -> bool:
    modes = TableProperties(before).column_mapping_mode, TableProperties(after).column_mapping_mode
    return modes == ("none", "name") and Feature.COLUMN_MAPPING in features


_ALLOWED: Mapping[str, _Rule] = {
    ENABLED: _turned_on(ENABLED, Feature.ROW_TRACKING),
    MATERIALIZED_ROW_ID: _row_tracking_is_on,
    MATERIALIZED_ROW_COMMIT_VERSION: _row_tracking_is_on,
    "delta.columnMapping.mode": _mapped_by_name,
    "delta.columnMapping.maxColumnId": _mapped_by_name,
    "delta.enableDeletionVectors": _turned_on("delta.enableDeletionVectors", Feature.DELETION_VECTORS),
    "delta.checkpointPolicy": lambda before, after, features: (
        Feature.V2_CHECKPOINT in features and after["delta.checkpointPolicy"].lower() == "v2"
    ),
    "delta.enableInCommitTimestamps": _turned_on("delta.enableInCommitTimestamps", Feature.IN_COMMIT_TIMESTAMP),
    "delta.inCommitTimestampEnablementVersion": _newly_set("delta.inCommitTimestampEnablementVersion"),
    "delta.inCommitTimestampEnablementTimestamp": _newly_set("delta.inCommitTimestampEnablementTimestamp"),
}


def _only_moved_marks(before: Metadata, after: Metadata) -> bool:
    """Whether only high-water marks of identity columns have advanced in the schema: writers that generate no values are not affected."""
    return without_marks(before.schema) == without_marks(after.schema)


def _only_got_mapped(before: Metadata, after: Metadata) -> bool:
    """Whether columns got ids and physical names, and the physical names equal those in existing files."""
    if TableProperties(before.configuration).column_mapping_mode != "none":
        return False
    if TableProperties(after.configuration).column_mapping_mode != "name":
        return False
    old, new = schema_from_json(before.schema_string), schema_from_json(after.schema_string)
    return _unmapped(old) == _unmapped(new) and _keeps_names(new)


def _unmapped(data_type: DataType) -> DataType:
    match data_type:
        case StructType():
            return StructType(tuple(_unmapped_field(column) for column in data_type))
        case ArrayType():
            return replace(data_type, element_type=_unmapped(data_type.element_type))
        case MapType():
            return replace(data_type, key_type=_unmapped(data_type.key_type), value_type=_unmapped(data_type.value_type))
    return data_type


def _unmapped_field(column: StructField) -> StructField:
    metadata = {key: value for key, value in column.metadata.items() if key not in _MAPPING_KEYS}
    return replace(column, data_type=_unmapped(column.data_type), metadata=metadata)


def _keeps_names(data_type: DataType) -> bool:
    match data_type:
        case StructType():
            return all(column.physical_name == column.name and _keeps_names(column.data_type) for column in data_type)
        case ArrayType():
            return _keeps_names(data_type.element_type)
        case MapType():
            return _keeps_names(data_type.key_type) and _keeps_names(data_type.value_type)
    return True
