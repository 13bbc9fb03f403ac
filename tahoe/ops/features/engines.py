"""The table features that other engines read and write, each with the URL of its source.

Data only. If an engine's list is complete (`Engine.is_complete`: it comes from the engine's code), the engine refuses all other features.
If the list comes from documentation, the support of other features is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

_DELTA_DOCS = "https://docs.delta.io/versioning/"
_KERNEL = "https://github.com/delta-io/delta-kernel-rs/blob/main/kernel/src/table_features/mod.rs"
_JAVA_KERNEL = "https://github.com/delta-io/delta/blob/master/kernel/kernel-api/src/main/java/io/delta/kernel/internal/tablefeatures/TableFeatures.java"
_DELTA_RS = "https://github.com/delta-io/delta-rs/blob/main/crates/core/src/kernel/transaction/protocol.rs"
_POLARS = "https://github.com/pola-rs/polars/blob/main/py-polars/src/polars/io/delta/functions.py"
_LEGACY = "appendOnly invariants checkConstraints changeDataFeed generatedColumns columnMapping "
_SPARK_24 = f"{_LEGACY}deletionVectors timestampNtz "
_SPARK_30 = f"{_SPARK_24}v2Checkpoint domainMetadata icebergCompatV1 "
_SPARK_31 = f"{_SPARK_30}icebergCompatV2 clustering allowColumnDefaults "
_SPARK_32 = f"{_SPARK_31}rowTracking typeWidening-preview vacuumProtocolCheck "
_SPARK_33 = (
    f"{_SPARK_32}inCommitTimestamp identityColumns typeWidening variantType-preview "
    "checkpointProtection coordinatedCommits-preview "
)
_SPARK_40 = f"{_SPARK_33}variantType variantShredding-preview "
_SPARK_42 = f"{_SPARK_40}variantShredding catalogManaged materializePartitionColumns "
_SPARK_44 = f"{_SPARK_42}icebergCompatV3 geospatial geospatial-dev "
_KERNEL_READS = (
    "columnMapping deletionVectors timestampNtz typeWidening typeWidening-preview v2Checkpoint vacuumProtocolCheck variantType "
    "variantType-preview variantShredding variantShredding-preview catalogManaged"
)
_RUST_KERNEL_WRITES = (
    f"{_KERNEL_READS.replace('typeWidening typeWidening-preview ', '')} catalogOwned-preview appendOnly changeDataFeed domainMetadata "
    "clustering rowTracking inCommitTimestamp icebergCompatV3 materializePartitionColumns allowColumnDefaults"
)
_JAVA_KERNEL_WRITES = (
    f"{_KERNEL_READS} geospatial appendOnly domainMetadata clustering rowTracking inCommitTimestamp icebergCompatV2 icebergCompatV3 "
    "checkpointProtection materializePartitionColumns allowColumnDefaults icebergWriterCompatV1 icebergWriterCompatV3 collations "
    "collations-preview"
)
_SAIL = "https://github.com/lakehq/sail/blob/main/crates/sail-delta-lake/src/transaction/protocol.rs"
_SAIL_READS = (
    "timestampNtz columnMapping deletionVectors v2Checkpoint typeWidening typeWidening-preview variantType variantType-preview "
    "variantShredding variantShredding-preview catalogManaged vacuumProtocolCheck"
)
_SAIL_WRITES = (
    f"{_SAIL_READS} appendOnly invariants checkConstraints generatedColumns identityColumns allowColumnDefaults inCommitTimestamp"
)


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine in a range of versions.

    Args:
        reads: the reader features that it is known to support, separated by spaces.
        writes: the features of tables that it is known to write; None if it writes no Delta tables.
        source: the URL of this information.
        is_complete: whether it refuses all features that are not listed.
        refuses: the features that it is known not to support for reading.
        most_reader, most_writer: the greatest protocol versions; below 3 and 7 it supports no features by name.
        by_name_only: whether it cannot read columns mapped by id.
        unless_used: writer features that it accepts as long as the table does not use them, or only a little.
    """

    name: str
    versions: str
    reads: str
    writes: str | None
    source: str
    is_complete: bool = False
    refuses: str = ""
    most_reader: int = 3
    most_writer: int = 7
    by_name_only: bool = False
    unless_used: str = ""


def _delta_spark(versions: str, tag: str, features: str, folder: str = "spark") -> Engine:
    """Return a release of delta-spark with the features in its code, without those that exist only for its tests."""
    source = f"https://github.com/delta-io/delta/blob/{tag}/{folder}/src/main/scala/org/apache/spark/sql/delta/TableFeature.scala"
    return Engine("delta-spark", versions, features, features, source, True)


ENGINES: tuple[Engine, ...] = (
    Engine("delta-spark", "2.0 to 2.2", _LEGACY, _LEGACY, _DELTA_DOCS, True, most_reader=2, most_writer=6),
    _delta_spark("2.3", "v2.3.0", f"{_LEGACY}identityColumns deletionVectors", "core"),
    _delta_spark("2.4", "v2.4.0", _SPARK_24, "core"),
    _delta_spark("3.0", "v3.0.0", _SPARK_30),
    _delta_spark("3.1", "v3.1.0", _SPARK_31),
    _delta_spark("3.2", "v3.2.1", _SPARK_32),
    _delta_spark("3.3", "v3.3.2", _SPARK_33),
    _delta_spark("4.0.0", "v4.0.0", f"{_SPARK_40}catalogOwned-preview"),
    _delta_spark("4.0.1", "v4.0.1", f"{_SPARK_40}catalogManaged"),
    _delta_spark("4.1 and 4.2", "v4.2.0", _SPARK_42),
    _delta_spark("4.3 and 4.4", "v4.4.0", _SPARK_44),
    Engine(
        "Databricks Runtime",
        "12.2 LTS and later",
        "columnMapping deletionVectors",
        f"{_LEGACY}identityColumns",
        "https://docs.databricks.com/delta/feature-compatibility.html",
    ),
    Engine(
        "Databricks Runtime",
        "14.3 LTS and later",
        "columnMapping deletionVectors",
        f"{_LEGACY}identityColumns deletionVectors domainMetadata rowTracking",
        "https://docs.databricks.com/delta/row-tracking.html and https://docs.databricks.com/gcp/delta/deletion-vectors",
    ),
    Engine(
        "deltalake (QueryBuilder, and writes)",
        "1.6",
        "timestampNtz deletionVectors variantType variantType-preview v2Checkpoint columnMapping",
        f"{_LEGACY}timestampNtz variantType variantType-preview v2Checkpoint deletionVectors",
        _DELTA_RS,
        True,
    ),
    Engine("deltalake (to_pyarrow, to_pandas)", "1.6", "timestampNtz", None, _DELTA_RS, True),
    Engine(
        "delta-kernel (Rust)",
        "0.27",
        f"{_KERNEL_READS} catalogOwned-preview",
        _RUST_KERNEL_WRITES,
        _KERNEL,
        True,
        unless_used="invariants",
    ),
    Engine(
        "delta-kernel (Java)",
        "4.4",
        f"{_KERNEL_READS} geospatial",
        _JAVA_KERNEL_WRITES,
        _JAVA_KERNEL,
        True,
        unless_used="invariants checkConstraints generatedColumns identityColumns changeDataFeed",
    ),
    Engine(
        "DuckDB (delta extension)",
        "1.5",
        "columnMapping deletionVectors timestampNtz typeWidening v2Checkpoint vacuumProtocolCheck",
        "appendOnly",
        "https://github.com/duckdb/duckdb-delta",
    ),
    Engine("Polars (scan_delta)", "2.1", "deletionVectors timestampNtz", None, _POLARS, True),
    Engine(
        "Trino",
        "477 and later",
        "columnMapping timestampNtz typeWidening typeWidening-preview deletionVectors vacuumProtocolCheck variantType variantType-preview "
        "v2Checkpoint",
        f"{_LEGACY.replace('generatedColumns ', '')}timestampNtz deletionVectors vacuumProtocolCheck",
        "https://github.com/trinodb/trino/blob/master/plugin/trino-delta-lake/src/main/java/io/trino/plugin/deltalake/transactionlog/DeltaLakeTableFeatures.java",
        True,
    ),
    Engine(
        "Snowflake (Delta files in object storage)",
        "since March 2026",
        "deletionVectors",
        None,
        "https://docs.snowflake.com/en/release-notes/2026/other/2026-03-02-iceberg-delta-deletion-vectors.html",
    ),
    Engine(
        "Amazon Athena",
        "engine version 3",
        "columnMapping timestampNtz",
        None,
        "https://docs.aws.amazon.com/athena/latest/ug/delta-lake-tables.html",
    ),
    Engine(
        "Microsoft Fabric, Spark",
        "runtime 1.3",
        "columnMapping deletionVectors timestampNtz",
        f"{_LEGACY}deletionVectors timestampNtz clustering domainMetadata",
        "https://learn.microsoft.com/en-us/fabric/get-started/delta-lake-interoperability",
    ),
    Engine(
        "Microsoft Fabric, SQL analytics endpoint",
        "2026",
        "columnMapping deletionVectors",
        None,
        "https://learn.microsoft.com/en-us/fabric/get-started/delta-lake-interoperability",
        refuses="timestampNtz",
        by_name_only=True,
    ),
    Engine("ClickHouse", "25.10 to 25.12", "", "", "https://clickhouse.com/docs/use-cases/data-lake/support-matrix"),
    Engine("ClickHouse", "26.1 and later", "deletionVectors", "", "https://github.com/ClickHouse/ClickHouse/pull/93852"),
    Engine(
        "Daft",
        "2026",
        "columnMapping",
        "",
        "https://github.com/Eventual-Inc/Daft/blob/main/daft/io/delta_lake/delta_lake_scan.py",
        refuses="deletionVectors",
    ),
    Engine("Sail", "0.7", _SAIL_READS, _SAIL_WRITES, _SAIL, True),
)
"""The known engines; undocumented support is not listed."""
