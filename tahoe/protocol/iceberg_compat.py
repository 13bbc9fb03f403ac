"""The rules that a table must follow so that Iceberg can read its files (PROTOCOL.md, "Iceberg Compatibility V1" and "V2"; V3 is the
reference's).

                        V1                      V2                          V3
    Iceberg's format    2                       2                           3
    deletion vectors    no, or as positions     no, or as positions         as they are
    lists and maps      no                      with ids for their parts    with ids for their parts
    void                no                      no                          ``unknown``
    row tracking        optional                optional                    on, from the beginning

The checks run when a commit is prepared, over values: a violation never reaches the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tahoe.base.exceptions import InvalidRequest, TahoeError, Unsupported
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import FEATURES, ICEBERG_COMPAT, Feature
from tahoe.protocol.properties import TableProperties
from tahoe.schema.mapping import explode, nested_ids_of, nested_keys
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType, parts_of
from tahoe.schema.widening import is_iceberg_widening, is_widening, type_changes_of
from tahoe.settings.property_settings import property_text

DELETES_PROPERTY = "delta.universalFormat.config.iceberg.deletes"
"""``position``: under IcebergCompatV1 and V2, deletion vectors become Iceberg's position deletes."""

ICEBERG_TYPES: Mapping[str, str] = {
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
"""Iceberg's types by the primitive types that IcebergCompat allows."""
_ROW_TRACKING = "delta.enableRowTracking"


def uniform_is_enabled(properties: TableProperties) -> bool:
    """Whether every commit is converted to Iceberg (``delta.universalFormat.enabledFormats``)."""
    return "iceberg" in properties.universal_format_enabled_formats


def deletes_form(properties: TableProperties) -> str:
    """Return the Iceberg form of rows deleted by deletion vectors: ``none`` (vectors are refused), ``position`` (position
    delete files) or ``vector`` (Puffin files)."""
    if 3 in _compat_versions(properties):
        return "vector"
    return "position" if (property_text(properties.configuration, DELETES_PROPERTY) or "").lower() == "position" else "none"


def format_version(properties: TableProperties) -> int:
    """Return the version of Iceberg's table format: 3 for IcebergCompatV3, else 2."""
    return 3 if 3 in _compat_versions(properties) else 2


def required_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that are set automatically unless the user sets them: column mapping, and row tracking for IcebergCompatV3."""
    properties = TableProperties(configuration)
    versions = _compat_versions(properties)
    required = {}
    if versions and properties.column_mapping_mode == "none":
        required["delta.columnMapping.mode"] = "name"
    if 3 in versions and not any(key.lower() == _ROW_TRACKING.lower() for key in configuration):
        required[_ROW_TRACKING] = "true"
    return required


def check_iceberg_compat(config: TableConfig, previous: TableConfig | None, adds: Iterable[AddFile]) -> None:
    """Refuse a commit after which Iceberg could not read the table.

    Args:
        config: the table as it will be after the commit.
        previous: the table as it was, None for a new one.
        adds: the files that the commit adds.

    Raises:
        InvalidRequest: ``DELTA_UNIVERSAL_FORMAT_VIOLATION`` or ``DELTA_ICEBERG_COMPAT_VIOLATION.…``.
        Unsupported: Hudi.
    """
    properties = config.properties
    compat = _compat_versions(properties)
    _check_formats(config, compat)
    _check_stays(config, previous, compat)
    if not compat:
        return
    if any(ICEBERG_COMPAT[version] in FEATURES[ICEBERG_COMPAT[compat[0]]].forbids for version in compat[1:]):
        raise _violation(
            config,
            "VERSION_MUTUAL_EXCLUSIVE",
            f"asks for {' and '.join(f'IcebergCompatV{version}' for version in compat)} at once. Enable only one of them.",
        )
    if config != previous:
        _check_table(config, previous, compat[0])
    for add in adds:
        _check_file(config, add)


def _compat_versions(properties: TableProperties) -> list[int]:
    return [version for version in (1, 2, 3) if properties.get(f"delta.enableIcebergCompatV{version}")]


def _check_formats(config: TableConfig, compat: Sequence[int]) -> None:
    formats = config.properties.universal_format_enabled_formats
    if "hudi" in formats:
        raise Unsupported(
            f"Table {config.table} requests UniForm to Hudi (delta.universalFormat.enabledFormats), which this version of "
            "Tahoe does not write. Leave 'hudi' out of the property.",
            code="DELTA_UNIVERSAL_FORMAT_VIOLATION",
            table=config.table,
        )
    if "iceberg" in formats and not compat:
        raise InvalidRequest(
            f"Table {config.table} has delta.universalFormat.enabledFormats = iceberg, which needs IcebergCompat. "
            "Set delta.enableIcebergCompatV2 = true (or V3) as well, or unset delta.universalFormat.enabledFormats.",
            code="DELTA_UNIVERSAL_FORMAT_VIOLATION",
            table=config.table,
        )


def _check_stays(config: TableConfig, previous: TableConfig | None, compat: Sequence[int]) -> None:
    """Refuse to disable IcebergCompatV3, because Iceberg's format never goes back from version 3 to 2."""
    if previous is not None and 3 in _compat_versions(previous.properties) and 3 not in compat:
        raise InvalidRequest(
            f"Table {config.table} has IcebergCompatV3, which cannot be disabled. Leave delta.enableIcebergCompatV3 = true, or write "
            "the data to a new table; to end UniForm alone, unset delta.universalFormat.enabledFormats.",
            code="DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
            table=config.table,
        )


def _check_table(config: TableConfig, previous: TableConfig | None, version: int) -> None:
    missing = [name for name in _features(version) if name not in config.features]
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
    if version == 3:
        _check_row_tracking(config, previous)
    _check_vectors(config, previous, version)
    check_types(config, version)
    if previous is not None and _partitioned_differently(config, previous):
        raise _violation(
            config,
            "REPLACE_TABLE_CHANGE_PARTITION_NAMES",
            f"may not change its partition columns from {', '.join(previous.partition_columns)} to "
            f"{', '.join(config.partition_columns)}. Write the data to a new table.",
        )


def _features(version: int) -> tuple[str, ...]:
    return (ICEBERG_COMPAT[version], *FEATURES[ICEBERG_COMPAT[version]].requires)


def _check_row_tracking(config: TableConfig, previous: TableConfig | None) -> None:
    if not config.properties.get(_ROW_TRACKING):
        raise _violation(
            config,
            "WRONG_REQUIRED_TABLE_PROPERTY",
            f"needs row tracking, found {_ROW_TRACKING} = false. Set {_ROW_TRACKING} = true in the same change.",
        )
    tracked = previous is not None and previous.is_active(Feature.ROW_TRACKING)
    if previous is not None and tracked and 3 not in _compat_versions(previous.properties):
        raise _violation(
            config,
            "WRONG_REQUIRED_TABLE_PROPERTY",
            "cannot be enabled where rows are tracked already: data files may contain row ids in columns that Iceberg's readers do not find. "
            "Write the data to a new table with delta.enableIcebergCompatV3 = true.",
        )


def _check_vectors(config: TableConfig, previous: TableConfig | None, version: int) -> None:
    if Feature.DELETION_VECTORS not in FEATURES[ICEBERG_COMPAT[version]].forbids or deletes_form(config.properties) == "position":
        return
    for version_config in (config, previous):
        if version_config is not None and version_config.is_active(Feature.DELETION_VECTORS):
            raise _violation(
                config,
                "DELETION_VECTORS_SHOULD_BE_DISABLED",
                f"may not use deletion vectors. Set {DELETES_PROPERTY} = position to show them as Iceberg's position deletes, or set "
                "delta.enableDeletionVectors = false, and purge those there are with REORG TABLE … APPLY (PURGE), before enabling "
                "IcebergCompat.",
            )


def check_types(config: TableConfig, version: int) -> None:
    """Refuse columns that Iceberg lacks or cannot follow; raises `InvalidRequest` that names the column.

    Args:
        version: of IcebergCompat.
    """
    allowed = ICEBERG_TYPES.keys() | ({"void"} if version == 3 else set())
    for path, column in explode(config.schema):
        name = ".".join(path)
        if version == 1 and isinstance(column.data_type, (ArrayType, MapType)):
            raise _violation(
                config,
                "UNSUPPORTED_DATA_TYPE",
                f"has column '{name}' of type {column.data_type}, which IcebergCompatV1 does not allow. Use delta.enableIcebergCompatV2.",
                column=name,
            )
        for part in parts_of(column.data_type):
            if isinstance(part, PrimitiveType) and part.name not in (allowed if part is column.data_type else ICEBERG_TYPES):
                raise _violation(
                    config,
                    "UNSUPPORTED_DATA_TYPE",
                    f"has column '{name}' of type {part}, which the Iceberg side cannot show. Drop the column, or cast it.",
                    column=name,
                )
        if version > 1:
            _check_nested_ids(config, name, column)
        for below, old, new in type_changes_of(column):
            if is_widening(old, new) and not is_iceberg_widening(old, new):
                whole = ".".join((*path, *below))
                raise _violation(
                    config,
                    "UNSUPPORTED_TYPE_WIDENING",
                    f"has column '{whole}', widened from {old} to {new}, which Iceberg cannot follow. Leave the type as it is, or turn "
                    "UniForm off; where the files are of both types already, write the data to a new table.",
                    column=whole,
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
    expected = set(nested_keys(column.data_type, column.physical_name))
    if expected - set(nested_ids_of(column)):
        raise _violation(
            config,
            "WRONG_REQUIRED_TABLE_PROPERTY",
            f"has column '{name}' without ids for its elements (delta.columnMapping.nested.ids). Set the property that enables "
            "IcebergCompat through ALTER TABLE, which gives them.",
            column=name,
        )


def _check_file(config: TableConfig, add: AddFile) -> None:
    if add.deletion_vector is not None and deletes_form(config.properties) == "none":
        raise _violation(
            config,
            "DELETION_VECTORS_NOT_PURGED",
            f"may not use deletion vectors, but file {add.path} would get one. Set {DELETES_PROPERTY} = position, or rewrite the file "
            "in place of marking rows.",
            file=add.path,
        )
    if add.num_records is None:
        raise _violation(
            config,
            "FILES_NOT_ICEBERG_COMPAT",
            f"needs the number of records of every file, but file {add.path} comes without. Write it with statistics.",
            file=add.path,
        )


def _partitioned_differently(config: TableConfig, previous: TableConfig) -> bool:
    if not _compat_versions(previous.properties) or not previous.partition_columns or not config.partition_columns:
        return False
    return _physical(config) != _physical(previous) and config.partition_columns != previous.partition_columns


def _physical(config: TableConfig) -> list[str]:
    """The physical names of the partition columns: renaming a column does not change the partitioning."""
    return [column.physical_name for column in config.partition_schema]


def _violation(config: TableConfig, subclass: str, problem: str, **facts: object) -> TahoeError:
    versions = " and ".join(f"V{version}" for version in _compat_versions(config.properties))
    return InvalidRequest(
        f"Table {config.table}, for IcebergCompat{versions}, {problem}",
        code=f"DELTA_ICEBERG_COMPAT_VIOLATION.{subclass}",
        table=config.table,
        **facts,
    )
