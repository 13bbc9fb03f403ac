"""What a table must be, and keep being, so that Iceberg can read its files (PROTOCOL.md, "Iceberg Compatibility V2").

The checks run when a commit is prepared, over values: what breaks a rule never reaches the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tahoe.exceptions import InvalidRequest, TahoeError, Unsupported
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.properties import TableProperties
from tahoe.schema.mapping import explode, nested_ids_of
from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructField, StructType

__all__ = ["check_iceberg_compat", "required_properties", "uniform_is_enabled"]

_ALLOWED = frozenset(
    ("byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean", "timestamp", "timestamp_ntz", "date")
)
_WIDER = {"byte": 0, "short": 1, "integer": 2, "long": 3}
_FEATURES = ("icebergCompatV2", "columnMapping")
_BEGINS_WITH_COUNT = re.compile(r'\s*\{\s*"numRecords"\s*:\s*\d')


def uniform_is_enabled(properties: TableProperties) -> bool:
    """Whether every commit shall become readable as Iceberg (``delta.universalFormat.enabledFormats``)."""
    return "iceberg" in properties.universal_format_enabled_formats


def required_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """Properties that the creation of a table sets by itself, where the user gave none: column mapping, for IcebergCompat."""
    properties = TableProperties(configuration)
    if _compat_versions(properties) and properties.column_mapping_mode == "none":
        return {"delta.columnMapping.mode": "name"}
    return {}


def check_iceberg_compat(config: TableConfig, previous: TableConfig | None, adds: Iterable[AddFile]) -> None:
    """Raises where a commit would make a table that Iceberg cannot read.

    Args:
        config: the table as it will be after the commit.
        previous: the table as it was, None for a new one.
        adds: the files that the commit adds.

    Raises:
        InvalidRequest: ``DELTA_UNIVERSAL_FORMAT_VIOLATION`` or ``DELTA_ICEBERG_COMPAT_VIOLATION.…``.
        Unsupported: Hudi, and the compatibility versions that this version of Tahoe does not write.
    """
    properties = config.properties
    compat = _compat_versions(properties)
    _check_formats(config, compat)
    if not compat:
        return
    if len(compat) > 1:
        raise _violation(
            config,
            "VERSION_MUTUAL_EXCLUSIVE",
            f"asks for {' and '.join(f'IcebergCompatV{version}' for version in compat)} at once. Enable only one of them.",
        )
    if compat != [2]:
        raise Unsupported(
            f"Table {config.table} asks for IcebergCompatV{compat[0]} (delta.enableIcebergCompatV{compat[0]}), which this "
            "version of Tahoe does not write. Use delta.enableIcebergCompatV2.",
            code="DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED",
            table=config.table,
        )
    if config != previous:
        _check_table(config, previous)
    for add in adds:
        _check_file(config, add)


def _compat_versions(properties: TableProperties) -> list[int]:
    return [version for version in (1, 2, 3) if properties.get(f"delta.enableIcebergCompatV{version}")]


def _check_formats(config: TableConfig, compat: Sequence[int]) -> None:
    formats = config.properties.universal_format_enabled_formats
    if "hudi" in formats:
        raise Unsupported(
            f"Table {config.table} asks for UniForm to Hudi (delta.universalFormat.enabledFormats), which this version of "
            "Tahoe does not write. Leave 'hudi' out of the property.",
            code="DELTA_UNIVERSAL_FORMAT_VIOLATION",
            table=config.table,
        )
    if "iceberg" in formats and not compat:
        raise InvalidRequest(
            f"Table {config.table} has delta.universalFormat.enabledFormats = iceberg, which needs IcebergCompat. "
            "Set delta.enableIcebergCompatV2 = true as well, or unset delta.universalFormat.enabledFormats.",
            code="DELTA_UNIVERSAL_FORMAT_VIOLATION",
            table=config.table,
        )


def _check_table(config: TableConfig, previous: TableConfig | None) -> None:
    missing = [name for name in _FEATURES if name not in config.features]
    if missing:
        raise _violation(
            config,
            "MISSING_REQUIRED_TABLE_FEATURE",
            f"needs the table feature {' and '.join(missing)} in its protocol. Set 'delta.feature.{missing[0]}' = 'supported'.",
        )
    if config.column_mapping_mode == "none":
        raise _violation(
            config,
            "WRONG_REQUIRED_TABLE_PROPERTY",
            "needs column mapping, found delta.columnMapping.mode = none. "
            "Set delta.columnMapping.mode = name in the same change.",
        )
    _check_vectors(config, previous)
    _check_types(config)
    if previous is not None and _partitioned_differently(config, previous):
        raise _violation(
            config,
            "REPLACE_TABLE_CHANGE_PARTITION_NAMES",
            f"may not change its partition columns from {', '.join(previous.partition_columns)} to "
            f"{', '.join(config.partition_columns)}. Write the data to a new table.",
        )


def _check_vectors(config: TableConfig, previous: TableConfig | None) -> None:
    for one in (config, previous):
        if one is not None and "deletionVectors" in one.features and one.properties.enable_deletion_vectors:
            raise _violation(
                config,
                "DELETION_VECTORS_SHOULD_BE_DISABLED",
                "may not use deletion vectors. Set delta.enableDeletionVectors = false, and purge those there are with "
                "REORG TABLE … APPLY (PURGE), before enabling IcebergCompat.",
            )


def _check_types(config: TableConfig) -> None:
    for path, column in explode(config.schema):
        name = ".".join(path)
        for part in _parts(column.data_type):
            if isinstance(part, PrimitiveType) and part.name not in _ALLOWED:
                raise _violation(
                    config,
                    "UNSUPPORTED_DATA_TYPE",
                    f"has column '{name}' of type {part}, which Iceberg does not have. Drop the column, or cast it.",
                    column=name,
                )
        _check_nested_ids(config, name, column)
        for change in column.metadata.get("delta.typeChanges") or ():
            if not _allowed_widening(str(change.get("fromType")), str(change.get("toType"))):
                raise _violation(
                    config,
                    "UNSUPPORTED_TYPE_WIDENING",
                    f"has column '{name}', widened from {change.get('fromType')} to {change.get('toType')}, which "
                    "Iceberg cannot follow. Write the data to a new table.",
                    column=name,
                )
    for column in config.partition_schema:
        if isinstance(column.data_type, (StructType, ArrayType, MapType)):
            raise _violation(
                config,
                "UNSUPPORTED_PARTITION_DATA_TYPE",
                f"is partitioned by '{column.name}' of type {column.data_type}; partition by columns of single values.",
                column=column.name,
            )


def _check_nested_ids(config: TableConfig, name: str, column: StructField) -> None:
    wanted = set(_nested_keys(column.data_type, column.physical_name))
    if wanted - set(nested_ids_of(column)):
        raise _violation(
            config,
            "WRONG_REQUIRED_TABLE_PROPERTY",
            f"has column '{name}' without ids for its elements (delta.columnMapping.nested.ids). Set "
            "delta.enableIcebergCompatV2 = true through ALTER TABLE, which gives them.",
            column=name,
        )


def _check_file(config: TableConfig, add: AddFile) -> None:
    if add.deletion_vector is not None:
        raise _violation(
            config,
            "DELETION_VECTORS_NOT_PURGED",
            f"may not use deletion vectors, but file {add.path} would get one. Rewrite the file in place of marking rows.",
            file=add.path,
        )
    if not _has_record_count(add.stats):
        raise _violation(
            config,
            "FILES_NOT_ICEBERG_COMPAT",
            f"needs the number of records of every file, but file {add.path} comes without. Write it with statistics.",
            file=add.path,
        )


def _has_record_count(stats: str | None) -> bool:
    if not stats:
        return False
    if _BEGINS_WITH_COUNT.match(stats):
        return True
    try:
        parsed: Any = json.loads(stats)
    except ValueError:
        return False
    return isinstance(parsed, dict) and isinstance(parsed.get("numRecords"), int)


def _partitioned_differently(config: TableConfig, previous: TableConfig) -> bool:
    if not _compat_versions(previous.properties) or not previous.partition_columns or not config.partition_columns:
        return False
    return _physical(config) != _physical(previous) and config.partition_columns != previous.partition_columns


def _physical(config: TableConfig) -> list[str]:
    """Physical names: a renamed partition column is still the same partitioning."""
    return [column.physical_name for column in config.partition_schema]


def _allowed_widening(before: str, after: str) -> bool:
    if before in _WIDER and after in _WIDER:
        return _WIDER[before] <= _WIDER[after]
    if (before, after) == ("float", "double"):
        return True
    old, new = _decimal(before), _decimal(after)
    return old is not None and new is not None and old.scale == new.scale and old.precision <= new.precision


def _decimal(name: str) -> DecimalType | None:
    found = re.fullmatch(r"decimal\((\d+),\s*(-?\d+)\)", name)
    return DecimalType(int(found[1]), int(found[2])) if found else None


def _parts(data_type: DataType) -> Iterator[DataType]:
    """The types of one field: itself, or those inside its lists and maps; the fields of structs are visited on their own."""
    match data_type:
        case ArrayType(element):
            yield from _parts(element)
        case MapType(key, value):
            yield from _parts(key)
            yield from _parts(value)
        case _:
            yield data_type


def _nested_keys(data_type: DataType, prefix: str) -> Iterator[str]:
    match data_type:
        case ArrayType(element):
            yield f"{prefix}.element"
            yield from _nested_keys(element, f"{prefix}.element")
        case MapType(key, value):
            yield f"{prefix}.key"
            yield from _nested_keys(key, f"{prefix}.key")
            yield f"{prefix}.value"
            yield from _nested_keys(value, f"{prefix}.value")


def _violation(config: TableConfig, subclass: str, problem: str, **facts: Any) -> TahoeError:
    return InvalidRequest(
        f"Table {config.table}, for IcebergCompatV2, {problem}",
        code=f"DELTA_ICEBERG_COMPAT_VIOLATION.{subclass}",
        table=config.table,
        **facts,
    )
