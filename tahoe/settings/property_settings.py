"""delta-spark's table properties, one row each. `tahoe.protocol.properties` parses their values."""

from __future__ import annotations

from collections.abc import Mapping

from tahoe.settings.setting import Setting, State, check_setting

_STORED = "It is stored in the table for other clients."


def _works(*names: str) -> list[Setting]:
    return [Setting(f"delta.{name}", State.WORKS, kind="table property") for name in names]


def _warned(state: State, name: str, why: str, *usual: str) -> Setting:
    return Setting(f"delta.{name}", state, f"{why} {_STORED}", "table property", usual)


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
    *_works("writePartitionColumnsToParquet"),
    _warned(
        State.NO_EFFECT,
        "checkpointRetentionDuration",
        "A checkpoint is deleted with the commits that it replaces, according to delta.logRetentionDuration.",
        "interval 2 days",
    ),
    _warned(
        State.NO_EFFECT, "enableFullRetentionRollback", "The complete log is always kept for delta.logRetentionDuration.", "true"
    ),
    _warned(State.NO_EFFECT, "sampleRetentionDuration", "delta-spark does not use it either.", "interval 7 days"),
    _warned(
        State.NO_EFFECT,
        "universalFormat.iceberg.atomicConversion.supported",
        "A conversion runs shortly after its commit; Table.uniform.status reports its progress.",
        "false",
    ),
    _warned(State.NO_EFFECT, "castIcebergTimeType", "A column of Iceberg's type time is refused by name.", "false"),
    _warned(
        State.NO_EFFECT,
        "ignoreIcebergBucketPartition",
        "Buckets of an Iceberg table do not become partitions of the Delta table.",
        "false",
    ),
)
"""In the order of delta-spark's documentation, the working ones first. A name that ends with a dot is a prefix."""

_BY_NAME = {setting.name.lower(): setting for setting in PROPERTIES}


def check_properties(properties: Mapping[str, str]) -> None:
    """Check properties that a user sets: warn once about each without effect. Unknown properties are ignored."""
    for name, value in properties.items():
        setting = _BY_NAME.get(name.lower())
        if setting is not None:
            check_setting(setting, value)


def property_text(configuration: Mapping[str, str], key: str) -> str | None:
    """Return the text of a property, whose key is compared without regard to case; None if it is not set."""
    exact = configuration.get(key)
    if exact is not None:
        return exact
    lowered = key.lower()
    return next((value for name, value in configuration.items() if name.lower() == lowered), None)
