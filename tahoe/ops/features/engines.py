"""What other engines say of themselves: which table features they read and write, each with the place where it stands.

Data only. What an engine's list does not name is refused by it where the list is complete (`Engine.is_complete`: it was read in the engine's
own code), and unknown where it is what a page of documentation happens to mention.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ENGINES", "Engine"]

_DELTA_DOCS = "https://docs.delta.io/versioning/"
_KERNEL = "https://github.com/delta-io/delta-kernel-rs/blob/main/kernel/src/table_features/mod.rs"
_JAVA_KERNEL = "https://github.com/delta-io/delta/blob/master/kernel/kernel-api/src/main/java/io/delta/kernel/internal/tablefeatures/TableFeatures.java"
_DELTA_RS = "https://github.com/delta-io/delta-rs/blob/main/crates/core/src/kernel/transaction/protocol.rs"
_POLARS = "https://github.com/pola-rs/polars/blob/main/py-polars/src/polars/io/delta/functions.py"
_LEGACY = "appendOnly invariants checkConstraints changeDataFeed generatedColumns columnMapping "
_SPARK_24 = f"{_LEGACY}deletionVectors timestampNtz "
_SPARK_30 = f"{_SPARK_24}v2Checkpoint domainMetadata icebergCompatV1 "
_SPARK_31 = f"{_SPARK_30}icebergCompatV2 clustering "
_SPARK_32 = f"{_SPARK_31}rowTracking typeWidening-preview "
_SPARK_40 = (
    f"{_SPARK_32}identityColumns typeWidening variantType variantType-preview variantShredding-preview checkpointProtection "
    "allowColumnDefaults inCommitTimestamp vacuumProtocolCheck coordinatedCommits-preview catalogOwned-preview "
)
_SPARK_44 = (
    f"{_SPARK_40.replace('catalogOwned-preview', '')}icebergCompatV3 variantShredding catalogManaged materializePartitionColumns geospatial "
    "geospatial-dev "
)
_KERNEL_READS = (
    "columnMapping deletionVectors timestampNtz typeWidening typeWidening-preview v2Checkpoint vacuumProtocolCheck variantType "
    "variantType-preview variantShredding-preview catalogManaged catalogOwned-preview"
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
    """One engine, in one range of versions.

    Args:
        reads: features of readers that it is known to understand, with spaces between them.
        writes: features of a table that it is known to write to; None where it writes to none.
        source: where that stands.
        is_complete: it refuses all that is not named.
        refuses: features that it is known not to understand, for reading.
        most_reader, most_writer: versions of the protocol; below 3 and 7 it knows no features by name.
        by_name_only: columns mapped by id it does not read.
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


ENGINES: tuple[Engine, ...] = (
    Engine("delta-spark", "2.0 to 2.2", _LEGACY, _LEGACY, _DELTA_DOCS, True, most_reader=2, most_writer=6),
    Engine("delta-spark", "2.4", _SPARK_24, _SPARK_24, _DELTA_DOCS),
    Engine("delta-spark", "3.0", _SPARK_30, _SPARK_30, _DELTA_DOCS),
    Engine("delta-spark", "3.2", _SPARK_32, _SPARK_32, _DELTA_DOCS),
    Engine(
        "delta-spark",
        "4.0",
        _SPARK_40,
        _SPARK_40,
        "https://github.com/delta-io/delta/blob/v4.0.1/spark/src/main/scala/org/apache/spark/sql/delta/TableFeature.scala",
        True,
    ),
    Engine(
        "delta-spark",
        "4.4",
        _SPARK_44,
        _SPARK_44,
        "https://github.com/delta-io/delta/blob/master/spark/src/main/scala/org/apache/spark/sql/delta/TableFeature.scala",
        True,
    ),
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
    Engine("delta-kernel (Rust)", "0.25", _KERNEL_READS, "appendOnly", _KERNEL),
    Engine("delta-kernel (Java)", "4.4", f"{_KERNEL_READS} geospatial", "appendOnly", _JAVA_KERNEL),
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
"""By what is known of them; what a page does not say stands nowhere here."""
