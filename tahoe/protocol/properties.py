"""Table properties, one row each: parser, default, and allowed values.

The names and defaults are the reference's. Keys without ``delta.`` are the user's own and are not checked.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.base.wording import suggestion
from tahoe.settings.property_settings import check_properties, property_text

logger = logging.getLogger(__name__)

T = TypeVar("T")


FEATURE_PREFIX = "delta.feature."
CONSTRAINT_PREFIX = "delta.constraints."
FREE_PREFIXES = (CONSTRAINT_PREFIX, FEATURE_PREFIX, "delta.universalformat.config.")

_UNIT_MS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_INTERVAL_PART = re.compile(r"(-?\d+)\s+(millisecond|second|minute|hour|day|week)s?")


class _Value(Generic[T]):
    """An attribute of `TableProperties`: the value of a property, or its default.

    Args:
        kind: converts the result of `TableProperties.get` to the attribute's type.
    """

    def __init__(self, key: str, kind: Callable[[Any], T]) -> None:
        self._key = key
        self._kind = kind

    def __get__(self, properties: TableProperties, owner: type) -> T:
        return self._kind(properties.get(self._key))


def _optional(kind: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else kind(value)


@dataclass(frozen=True, slots=True)
class TableProperties:
    """Typed access to `Metadata.configuration`; keys are matched without regard to case, as the reference does."""

    configuration: Mapping[str, str]

    append_only = _Value("delta.appendOnly", bool)
    """Whether rows may only be added."""
    checkpoint_interval = _Value("delta.checkpointInterval", int)
    """The number of versions from one checkpoint to the next."""
    checkpoint_policy = _Value("delta.checkpointPolicy", str)
    """``classic`` or ``v2``; the latter counts only with the protocol's feature."""
    checkpoints_protected_before = _Value("delta.requireCheckpointProtectionBeforeVersion", int)
    """The version before which checkpoints stay until all of them expire; counts only with the protocol's feature."""
    write_stats_as_json = _Value("delta.checkpoint.writeStatsAsJson", bool)
    """Whether checkpoints contain the statistics of files as JSON text."""
    write_stats_as_struct = _Value("delta.checkpoint.writeStatsAsStruct", bool)
    """Whether checkpoints contain the statistics of files as columns."""
    log_retention_ms = _Value("delta.logRetentionDuration", int)
    """How long a commit stays in the log after a checkpoint includes it, in milliseconds."""
    deleted_file_retention_ms = _Value("delta.deletedFileRetentionDuration", int)
    """How long a removed file stays for readers of older versions, in milliseconds."""
    set_transaction_retention_ms = _Value("delta.setTransactionRetentionDuration", _optional(int))
    """The age at which checkpoints drop an application's transaction, in milliseconds; None for never."""
    enable_expired_log_cleanup = _Value("delta.enableExpiredLogCleanup", bool)
    """Whether expired log files are deleted after a checkpoint."""
    target_file_size = _Value("delta.targetFileSize", _optional(int))
    """The size of OPTIMIZE's data files in bytes; None for the writer's default."""
    enable_deletion_vectors = _Value("delta.enableDeletionVectors", bool)
    """Whether writers may mark rows as deleted; counts only with the protocol's feature."""
    column_mapping_mode = _Value("delta.columnMapping.mode", str)
    """``none``, ``name`` or ``id``; counts only with the protocol's feature (`TableConfig.column_mapping_mode`)."""
    max_column_id = _Value("delta.columnMapping.maxColumnId", int)
    """The highest id that column mapping has assigned to a column; 0 if there is none."""
    randomize_file_prefixes = _Value("delta.randomizeFilePrefixes", bool)
    """Whether new files go to folders of random names."""
    enable_type_widening = _Value("delta.enableTypeWidening", bool)
    """Whether the types of columns may be widened."""
    universal_format_enabled_formats = _Value[tuple[str, ...]]("delta.universalFormat.enabledFormats", tuple)
    """Other formats in which the table is readable, such as ``iceberg``."""
    parquet_compression_codec = _Value("delta.parquet.compression.codec", _optional(str))
    """The codec of new data files; None for the writer's default."""

    def get(self, key: str) -> Any:
        """Return the typed value of the property `key` (full name), or its default. Raises `CorruptTable` if the table's value is invalid."""
        row = _ROWS[key.lower()]
        text = property_text(self.configuration, key)
        if text is None:
            return row.default
        try:
            return row.parse(text)
        except ValueError as error:
            raise CorruptTable(
                f"The table property {row.key} is '{text}', but it {row.help}. Set it to a valid value.",
                code="TAHOE_CORRUPT_TABLE_PROPERTY",
                property=row.key,
            ) from error

    @property
    def auto_compacts(self) -> bool:
        """Whether a write is followed by a compaction of its small files; ``auto`` and ``legacy`` mean ``true`` here."""
        return bool(self.get("delta.autoOptimize")) or self.get("delta.autoOptimize.autoCompact") in ("true", "auto", "legacy")

    @property
    def optimizes_writes(self) -> bool:
        """Whether rows are shuffled before a write, so that partitions get few files."""
        asked = self.get("delta.autoOptimize.optimizeWrite")
        return bool(self.get("delta.autoOptimize")) if asked is None else bool(asked)

    @property
    def enable_change_data_feed(self) -> bool:
        """Whether commits record the changed rows; the property's older name counts too."""
        return bool(self.get("delta.enableChangeDataFeed")) or bool(self.get("delta.enableChangeDataCapture"))


def validate_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties a user sets, with the reference's spelling of each key; warns about those without effect (`tahoe.settings`).

    Raises:
        InvalidRequest: `DELTA_UNKNOWN_CONFIGURATION` for an unknown ``delta.`` key, or a value that is not allowed.
    """
    valid: dict[str, str] = {}
    for key, value in properties.items():
        lowered = key.lower()
        if not isinstance(value, str):
            raise InvalidRequest(
                f"The value of the table property {key} must be text, found {type(value).__name__}.",
                code="TAHOE_TABLE_PROPERTY",
                property=key,
            )
        if not lowered.startswith("delta.") or lowered.startswith(CONSTRAINT_PREFIX):
            if f"delta.{lowered}" in _ROWS:
                known = _ROWS[f"delta.{lowered}"].key
                logger.warning(
                    "The table property '%s' has no effect on Delta; did you mean '%s'? It is stored nevertheless.", key, known
                )
            valid[key] = value
        elif lowered.startswith(FREE_PREFIXES):
            _check_status(lowered, value)
            valid[FEATURE_PREFIX + key[len(FEATURE_PREFIX) :] if lowered.startswith(FEATURE_PREFIX) else lowered] = value
        else:
            row = _ROWS.get(lowered)
            if row is None:
                similar = suggestion(key, (known.key for known in _ROWS.values()))
                raise InvalidRequest(
                    f"There is no table property '{key}'.{similar} Check its spelling; keys of your "
                    "own must not begin with 'delta.'.",
                    code="DELTA_UNKNOWN_CONFIGURATION",
                    property=key,
                )
            _check_protocol_version(row.key, value)
            try:
                row.parse(value)
            except ValueError as error:
                raise InvalidRequest(
                    f"The table property {row.key} {row.help}, found '{value}'.", code=row.code, property=row.key
                ) from error
            valid[row.key] = value
    check_properties(valid)
    _check_retentions(valid)
    return valid


def _check_status(key: str, value: str) -> None:
    if key.startswith(FEATURE_PREFIX) and value.lower() not in ("supported", "enabled"):
        raise InvalidRequest(
            f"The table property {key} must be 'supported', found '{value}'. A feature that a table has is dropped by ALTER TABLE … DROP "
            "FEATURE (Table.drop_feature).",
            code="DELTA_UNSUPPORTED_FEATURE_STATUS",
            property=key,
        )


def _check_protocol_version(key: str, value: str) -> None:
    newest = _PROTOCOL_VERSIONS.get(key)
    if newest is None:
        return
    if not value.strip().isdecimal():
        raise InvalidRequest(
            f"The table property {key} needs to be a whole number, found '{value}'.",
            code="DELTA_PROTOCOL_PROPERTY_NOT_INT",
            property=key,
        )
    if not 1 <= int(value) <= newest:
        raise InvalidRequest(
            f"The table property {key} needs to be one of 1 to {newest}, found '{value}': this version of Tahoe knows no other protocol.",
            code="TAHOE_TABLE_PROPERTY",
            property=key,
        )


_PROTOCOL_VERSIONS = {"delta.minReaderVersion": 3, "delta.minWriterVersion": 7}


def same_key(key: str, other: str) -> bool:
    """Whether two texts name the same property: keys of Delta are case-insensitive, keys of users and constraints case-sensitive."""
    if key == other:
        return True
    lowered = key.lower()
    return lowered == other.lower() and lowered.startswith("delta.") and not lowered.startswith(CONSTRAINT_PREFIX)


def is_table_property(name: str) -> bool:
    """Whether a ``delta.`` property has this name, ignoring case."""
    return name.lower() in _ROWS


def parse_interval_ms(text: str) -> int:
    """Parse ``interval 30 days``, ``2 weeks``, ``1 day 12 hours`` to milliseconds. Raises ValueError for months, years and invalid text."""
    body = text.strip().lower()
    body = body.removeprefix("interval").strip()
    parts = _INTERVAL_PART.findall(body)
    if not parts or _INTERVAL_PART.sub("", body).strip():
        raise ValueError(text)
    total = sum(int(count) * _UNIT_MS[unit] for count, unit in parts)
    if total < 0:
        raise ValueError(text)
    return total


def parse_size(text: str) -> int:
    """Parse ``134217728``, ``128mb``, ``1g`` to bytes. Raises ValueError for invalid text and for 0."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or not int(match[1]):
        raise ValueError(text)
    return int(match[1]) << 10 * " kmgt".index(match[2] or " ")


_SIZE = re.compile(r"(\d+)\s*(?:([kmgt])(?:i?b)?|b)?")


@dataclass(frozen=True, slots=True)
class _Row:
    key: str
    default: Any
    parse: Callable[[str], Any]
    help: str
    code: str = "TAHOE_TABLE_PROPERTY"
    """The error class of a value that `parse` refuses."""


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise ValueError(text)
        return value

    return parse


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        lowered = text.strip().lower()
        for choice in choices:
            if choice.lower() == lowered:
                return choice
        raise ValueError(text)

    return parse


def _formats(text: str) -> tuple[str, ...]:
    formats = tuple(text.split(",")) if text else ()
    if len(set(formats)) != len(formats) or not set(formats) <= {"iceberg", "hudi"}:
        raise ValueError(text)
    return formats


def _bool_row(key: str, default: bool = False) -> _Row:
    return _Row(key, default, _boolean, "needs to be a boolean")


def _interval_row(key: str, default_ms: int | None) -> _Row:
    rule = "needs to be an interval such as '2 weeks' (months and years are not accepted)"
    return _Row(key, default_ms, parse_interval_ms, rule, "DELTA_INVALID_INTERVAL")


_DAY = _UNIT_MS["day"]
_ALL_ROWS = (
    _Row("delta.minReaderVersion", None, _one_of("1", "2", "3"), "needs to be one of 1, 2, 3"),
    _Row("delta.minWriterVersion", None, _one_of(*"1234567"), "needs to be one of 1 to 7"),
    _bool_row("delta.ignoreProtocolDefaults"),
    _bool_row("delta.appendOnly"),
    _interval_row("delta.logRetentionDuration", 30 * _DAY),
    _interval_row("delta.deletedFileRetentionDuration", 7 * _DAY),
    _interval_row("delta.checkpointRetentionDuration", 2 * _DAY),
    _interval_row("delta.sampleRetentionDuration", 7 * _DAY),
    _interval_row("delta.setTransactionRetentionDuration", None),
    _interval_row("delta.dropFeatureTruncateHistory.retentionDuration", _DAY),
    _bool_row("delta.enableExpiredLogCleanup", True),
    _bool_row("delta.enableFullRetentionRollback", True),
    _Row("delta.checkpointInterval", 10, _at_least(1), "needs to be a positive integer"),
    _Row("delta.checkpointPolicy", "classic", _one_of("classic", "v2"), "needs to be 'classic' or 'v2'"),
    _bool_row("delta.checkpoint.writeStatsAsJson", True),
    _bool_row("delta.checkpoint.writeStatsAsStruct", True),
    _Row("delta.dataSkippingNumIndexedCols", 32, _at_least(-1), "needs to be an integer of -1 or more"),
    _Row("delta.dataSkippingStatsColumns", None, str, "needs to be a comma-separated list of columns"),
    _Row("delta.dataSkippingStringPrefixLength", 32, _at_least(0), "needs to be an integer of 0 or more"),
    _bool_row("delta.enableChangeDataFeed"),
    _bool_row("delta.enableChangeDataCapture"),
    _bool_row("delta.enableDeletionVectors"),
    _Row(
        "delta.columnMapping.mode",
        "none",
        _one_of("none", "name", "id"),
        "needs to be 'none', 'name' or 'id'",
        "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
    ),
    _Row("delta.columnMapping.maxColumnId", 0, _at_least(0), "needs to be an integer"),
    _Row(
        "delta.isolationLevel",
        "Serializable",
        _one_of("Serializable"),
        "needs to be 'Serializable'",
        "DELTA_INVALID_ISOLATION_LEVEL",
    ),
    _bool_row("delta.randomizeFilePrefixes"),
    _Row("delta.randomPrefixLength", 2, _at_least(1), "needs to be greater than 0"),
    _Row(
        "delta.autoOptimize.autoCompact",
        None,
        _one_of("true", "false", "auto", "legacy"),
        "needs to be true, false, auto or legacy",
    ),
    _Row("delta.autoOptimize.optimizeWrite", None, _boolean, "needs to be a boolean"),
    _bool_row("delta.autoOptimize"),
    _Row("delta.targetFileSize", None, parse_size, "needs to be a size such as '134217728' or '128mb'"),
    _bool_row("delta.tuneFileSizesForRewrites"),
    _bool_row("delta.compatibility.symlinkFormatManifest.enabled"),
    _bool_row("delta.enableRowTracking"),
    _bool_row("delta.rowTrackingSuspended"),
    _Row("delta.rowTracking.materializedRowIdColumnName", None, str, "is text"),
    _Row("delta.rowTracking.materializedRowCommitVersionColumnName", None, str, "is text"),
    _bool_row("delta.enableTypeWidening"),
    _bool_row("delta.enableInCommitTimestamps"),
    _Row("delta.inCommitTimestampEnablementVersion", None, _at_least(0), "needs to be a version"),
    _Row("delta.inCommitTimestampEnablementTimestamp", None, _at_least(0), "needs to be milliseconds since the epoch"),
    _bool_row("delta.enableVariantShredding"),
    _Row("delta.requireCheckpointProtectionBeforeVersion", 0, _at_least(0), "needs to be a version"),
    _Row(
        "delta.universalFormat.enabledFormats", (), _formats, "needs to be a comma-separated list of formats from {hudi,iceberg}"
    ),
    _bool_row("delta.enableIcebergCompatV1"),
    _bool_row("delta.enableIcebergCompatV2"),
    _bool_row("delta.enableIcebergCompatV3"),
    _bool_row("delta.universalFormat.iceberg.atomicConversion.supported"),
    _bool_row("delta.castIcebergTimeType"),
    _bool_row("delta.ignoreIcebergBucketPartition"),
    _bool_row("delta.enableMaterializePartitionColumnsFeature"),
    _bool_row("delta.writePartitionColumnsToParquet"),
    _Row("delta.parquet.format.version", "1.0.0", str, "needs to be a Parquet format version"),
    _Row(
        "delta.parquet.compression.codec",
        None,
        _one_of("snappy", "zstd", "gzip", "lz4_raw", "lz4", "uncompressed", "none"),
        "needs to be one of uncompressed, snappy, gzip, lz4, lz4_raw, zstd",
    ),
)
_ROWS = {row.key.lower(): row for row in _ALL_ROWS}


def _check_retentions(properties: Mapping[str, str]) -> None:
    asked = TableProperties(properties)
    named = {"delta.logRetentionDuration", "delta.deletedFileRetentionDuration"} & set(properties)
    if named and asked.log_retention_ms < asked.deleted_file_retention_ms:
        raise InvalidRequest(
            "delta.logRetentionDuration must not be shorter than delta.deletedFileRetentionDuration, "
            "or time travel would reach versions whose log is gone. Change one of the two.",
            code="TAHOE_TABLE_PROPERTY",
            property="delta.logRetentionDuration",
        )
