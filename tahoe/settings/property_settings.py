"""Table properties of the reference, one row each (`tahoe.protocol.properties` says how their texts are read)."""

from __future__ import annotations

from collections.abc import Mapping

from tahoe.settings.setting import Setting, State, check_setting

__all__ = ["PROPERTIES", "check_properties"]

_KEPT = "It is kept in the table, where other clients see it."


def _works(*names: str) -> list[Setting]:
    return [Setting(f"delta.{name}", State.WORKS, kind="table property") for name in names]


def _told(state: State, name: str, why: str, *usual: str) -> Setting:
    return Setting(f"delta.{name}", state, f"{why} {_KEPT}", "table property", usual)


PROPERTIES: tuple[Setting, ...] = (
    *_works(
        "minReaderVersion", "minWriterVersion", "ignoreProtocolDefaults", "feature.", "constraints.", "universalformat.config."
    ),
    *_works("appendOnly", "enableChangeDataFeed", "enableChangeDataCapture", "enableDeletionVectors", "isolationLevel"),
    *_works("logRetentionDuration", "deletedFileRetentionDuration", "setTransactionRetentionDuration", "enableExpiredLogCleanup"),
    *_works("requireCheckpointProtectionBeforeVersion", "dropFeatureTruncateHistory.retentionDuration"),
    *_works("checkpointInterval", "checkpointPolicy", "checkpoint.writeStatsAsJson", "checkpoint.writeStatsAsStruct"),
    *_works("dataSkippingNumIndexedCols", "dataSkippingStatsColumns", "dataSkippingStringPrefixLength"),
    *_works("columnMapping.mode", "columnMapping.maxColumnId", "randomizeFilePrefixes", "randomPrefixLength"),
    *_works("enableRowTracking", "rowTrackingSuspended", "rowTracking.materializedRowIdColumnName"),
    *_works("rowTracking.materializedRowCommitVersionColumnName", "enableTypeWidening", "enableVariantShredding"),
    *_works("enableInCommitTimestamps", "inCommitTimestampEnablementVersion", "inCommitTimestampEnablementTimestamp"),
    *_works("universalFormat.enabledFormats", "enableIcebergCompatV1", "enableIcebergCompatV2", "enableIcebergCompatV3"),
    *_works(
        "targetFileSize", "tuneFileSizesForRewrites", "autoOptimize.autoCompact", "autoOptimize.optimizeWrite", "autoOptimize"
    ),
    *_works("compatibility.symlinkFormatManifest.enabled"),
    *_works("parquet.compression.codec", "parquet.format.version", "enableMaterializePartitionColumnsFeature"),
    _told(
        State.NO_EFFECT,
        "checkpointRetentionDuration",
        "A checkpoint goes with the commits that it stands for, by delta.logRetentionDuration.",
        "interval 2 days",
    ),
    _told(State.NO_EFFECT, "enableFullRetentionRollback", "The log is always kept whole for delta.logRetentionDuration.", "true"),
    _told(State.NO_EFFECT, "sampleRetentionDuration", "The reference does not use it either.", "interval 7 days"),
    _told(
        State.NO_EFFECT,
        "universalFormat.iceberg.atomicConversion.supported",
        "A conversion follows its commit within moments, and says how far it is (Table.uniform.status).",
        "false",
    ),
    _told(State.NO_EFFECT, "castIcebergTimeType", "A column of Iceberg's type time is refused by name.", "false"),
    _told(
        State.NO_EFFECT,
        "ignoreIcebergBucketPartition",
        "Buckets of an Iceberg table are no partitions of the Delta table that it becomes.",
        "false",
    ),
    _told(
        State.PLANNED,
        "writePartitionColumnsToParquet",
        "Partition columns are not written into data files of this table.",
        "false",
    ),
)
"""In the order of the reference's documentation, those that work first. A name that ends with a point stands for all that begin so."""

_BY_NAME = {setting.name.lower(): setting for setting in PROPERTIES}


def check_properties(properties: Mapping[str, str]) -> None:
    """Somebody sets these properties: tell once of each that changes nothing. Unknown ones are not looked at."""
    for name, value in properties.items():
        setting = _BY_NAME.get(name.lower())
        if setting is not None:
            check_setting(setting, value)
