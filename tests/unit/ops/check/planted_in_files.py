"""Violations in file actions, in data files, deletion vectors and change files, and between versions."""

from __future__ import annotations

from tests.unit.ops.check.planting import (
    ADD,
    REMOVE,
    TRACKED,
    TRACKING,
    Planted,
    both,
    configure,
    configured,
    edit,
    feature,
    file,
    first,
    in_a_folder_of_another_name,
    inline_vector,
    null_in,
    put,
    rewrite,
    say,
    schema,
    statistics,
    vector,
    with_fields,
    without_column,
)

PLANTED: list[Planted] = [
    # file rules
    ("a path out of the table", "plain", put(2, "remove", path="../../etc/passwd"), {"paths-are-encoded-and-lead-to-files"}),
    (
        "a data file in a hidden folder",
        "plain",
        say(2, {"add": {**ADD, "path": "_hidden/a.parquet"}}),
        {"data-files-stand-in-visible-folders", "live-files-are-there"},
    ),
    (
        "a partition column that is none",
        "plain",
        put(0, "metaData", partitionColumns=["day", "month"]),
        {"partition-columns-are-columns", "files-have-a-value-of-each-partition-column"},
    ),
    (
        "a partition value of another name",
        "plain",
        put(1, "add", partitionValues={"Day": "b"}),
        {"files-have-a-value-of-each-partition-column"},
    ),
    (
        "Iceberg without column mapping",
        "iceberg",
        configure(0, delta__columnMapping__mode="none"),
        {"iceberg-needs-column-mapping", "files-have-a-value-of-each-partition-column", "partition-columns-are-materialised"},
    ),
    (
        "a schema that is a list",
        "plain",
        put(0, "metaData", schemaString="[]", partitionColumns=[]),
        {"the-schema-is-a-struct", "files-have-a-value-of-each-partition-column"},
    ),
    (
        "a partition value that cannot be read",
        "plain",
        schema(0, lambda fields: fields[2].update(type="date")),
        {"partition-values-can-be-read"},
    ),
    ("statistics that are no JSON", "plain", put(1, "add", stats="{"), {"statistics-are-an-object"}),
    (
        "a negative count",
        "plain",
        statistics(0, numRecords=-1, nullCount={}),
        {"record-counts-are-counts", "record-counts-are-those-of-files", "statistics-hold-for-the-rows"},
    ),
    (
        "more nulls than rows",
        "plain",
        statistics(0, nullCount={"id": 9, "name": 0}),
        {"null-counts-are-within-the-records", "statistics-hold-for-the-rows"},
    ),
    (
        "a minimum above the maximum",
        "plain",
        statistics(0, minValues={"id": 9}),
        {"minima-do-not-exceed-maxima", "statistics-hold-for-the-rows"},
    ),
    ("a vector and no row count", "vectors", statistics(1, numRecords=...), {"files-with-vectors-tell-their-records"}),
    (
        "a vector without the feature",
        "vectors",
        both(
            put(0, "protocol", readerFeatures=[], writerFeatures=["appendOnly", "invariants"]),
            configure(0, delta__enableDeletionVectors="false"),
        ),
        {"vectors-need-the-feature"},
    ),
    (
        "a vector that is not asked for",
        "vectors",
        configure(0, delta__enableDeletionVectors="false"),
        {"new-vectors-are-allowed"},
    ),
    (
        "a storage type that is none",
        "vectors",
        edit(1, lambda actions: vector(actions, storageType="x")),
        {"storage-types-are-known", "vectors-can-be-read"},
    ),
    (
        "an inline vector with an offset",
        "vectors",
        edit(1, lambda actions: vector(actions, offset=-1)),
        {"inline-vectors-have-no-offset", "vectors-can-be-read", "vector-files-have-their-version"},
    ),
    (
        "a vector of more rows than there are",
        "vectors",
        edit(1, lambda actions: vector(actions, cardinality=30)),
        {"vectors-can-be-read", "cardinalities-are-within-the-records"},
    ),
    # history rules
    (
        "tracking that is enabled over files without ids",
        "plain",
        both(
            say(3, {"commitInfo": {}}),
            lambda table: say(3, {"protocol": TRACKING}, {"metaData": configured(table, **TRACKED)})(table),
        ),
        {"tracked-tables-have-all-row-ids"},
    ),
    (
        "a physical name that changes",
        "mapped",
        lambda table: say(
            1,
            {
                "metaData": with_fields(
                    table, lambda fields: fields[1]["metadata"].update({"delta.columnMapping.physicalName": "other"})
                )
            },
        )(table),
        {"physical-names-stay"},
    ),
    (
        "a highest id that sinks",
        "mapped",
        lambda table: both(
            say(1, {"metaData": configured(table)}),
            configure(0, delta__columnMapping__maxColumnId="9"),
        )(table),
        {"the-highest-id-never-sinks"},
    ),
    (
        "a wider type that no one tells",
        "plain",
        both(
            feature(0, "typeWidening", reader=["typeWidening"]),
            lambda table: say(1, {"metaData": with_fields(table, lambda fields: fields[0].update(type="decimal(20,0)"))})(table),
        ),
        {"columns-change-their-type-by-widening"},
    ),
    (
        "partitions by another column under Iceberg",
        "iceberg",
        lambda table: say(
            2,
            {"commitInfo": {}},
            {"metaData": {**first(table, 0, "metaData"), "partitionColumns": ["name"]}},
            *({"remove": {**REMOVE, "path": first(table, each, "add")["path"]}} for each in (0, 1)),
        )(table),
        {"partition-columns-keep-their-names"},
    ),
    (
        "a domain without the feature",
        "plain",
        say(1, {"domainMetadata": {"domain": "mine", "configuration": "", "removed": False}}),
        {"domains-need-the-feature"},
    ),
    (
        "clustering by a column that is not there",
        "tracked",
        say(
            1,
            {
                "domainMetadata": {
                    "domain": "delta.clustering",
                    "configuration": '{"clusteringColumns":[["x"]]}',
                    "removed": False,
                }
            },
        ),
        {"clustering-columns-are-columns"},
    ),
    ("clustering and partitions", "tracked", feature(0, "clustering"), {"clustered-tables-have-no-partitions"}),
    (
        "a feature without what it requires",
        "plain",
        feature(0, "rowTracking"),
        {"required-features-are-supported", *("added-files-have-a-base-row-id", "added-files-have-a-row-commit-version")},
    ),
    ("a file without row ids", "tracked", put(1, "add", baseRowId=...), {"added-files-have-a-base-row-id"}),
    (
        "two versions for Iceberg",
        "iceberg",
        both(feature(0, "icebergCompatV3", "rowTracking", "domainMetadata"), configure(0, delta__enableIcebergCompatV3="true")),
        {"one-iceberg-version-is-active", "added-files-have-a-base-row-id", "added-files-have-a-row-commit-version"},
    ),
    ("a file of another version", "tracked", put(1, "add", defaultRowCommitVersion=0), {"added-files-have-a-row-commit-version"}),
    (
        "a file whose row ids change",
        "tracked",
        lambda table: say(1, {"remove": {"path": first(table, 0, "add")["path"], "dataChange": True, "baseRowId": 77}})(table),
        {"files-keep-their-row-ids"},
    ),
    ("row ids given twice", "tracked", put(1, "add", baseRowId=0), {"new-row-ids-are-beyond-the-mark", "row-ids-are-given-once"}),
    (
        "a high-water mark that sinks",
        "tracked",
        put(1, "domainMetadata", configuration='{"rowIdHighWaterMark":1}'),
        {"the-high-water-mark-never-sinks", "the-high-water-mark-covers-the-commit"},
    ),
    # data rules
    (
        "files from before IcebergCompatV1 was asked for",
        "iceberg_later",
        both(
            feature(1, "icebergCompatV1"),
            configure(1, delta__enableIcebergCompatV2="false", delta__enableIcebergCompatV1="true"),
        ),
        {"partition-columns-are-materialised"},
    ),
    (
        "timestamps of ninety-six bits under Iceberg",
        "iceberg_times",
        rewrite(0, "**/*.parquet", use_deprecated_int96_timestamps=True),
        {"timestamps-are-not-int96"},
    ),
    (
        "a vector that marks a row that is not there",
        "vectors",
        edit(1, lambda actions: vector(actions, **inline_vector(9), offset=None)),
        {"vectors-mark-rows-that-there-are"},
    ),
    (
        "a vector file in a folder that is no prefix",
        "vectors",
        in_a_folder_of_another_name,
        {"vector-files-are-named-by-their-id", "vectors-can-be-read"},
    ),
    ("a missing data file", "plain", file("day=a/*.parquet", lambda _: None), {"live-files-are-there"}),
    ("a longer data file", "plain", file("day=a/*.parquet", lambda data: data + data), {"live-files-have-their-size"}),
    (
        "a required column with a null",
        "plain",
        both(
            lambda table: null_in(table, "day=a/*.parquet"),
            schema(0, lambda fields: fields[0].update(nullable=False)),
        ),
        {"required-columns-have-no-nulls", "live-files-have-their-size"},
    ),
    (
        "a data file that is no Parquet",
        "plain",
        file("day=a/*.parquet", lambda data: b"x" * len(data)),
        {"live-files-are-parquet"},
    ),
    (
        "a false row count",
        "plain",
        statistics(0, numRecords=4),
        {"record-counts-are-those-of-files", "statistics-hold-for-the-rows"},
    ),
    (
        "a column of another type",
        "plain",
        schema(0, lambda fields: fields[0].update(type="string")),
        {"columns-have-the-types-of-the-schema"},
    ),
    (
        "a vector of another cardinality",
        "vectors",
        edit(1, lambda actions: vector(actions, cardinality=2)),
        {"vectors-can-be-read"},
    ),
    (
        "a damaged vector file",
        "vectors",
        file("deletion_vector*.bin", lambda data: b"\2" + data[1:]),
        {"vector-files-have-their-version", "vectors-can-be-read"},
    ),
    (
        "a flipped bit in a vector",
        "vectors",
        file("deletion_vector*.bin", lambda data: data[:-6] + bytes([data[-6] ^ 1]) + data[-5:]),
        {"vectors-can-be-read", "vector-files-have-their-version"},
    ),
    (
        "a change file that does not tell the changes",
        "changes",
        lambda table: without_column(table, "_change_data/*.parquet", "_change_type"),
        {"change-files-tell-the-type-of-change", "change-files-have-their-size"},
    ),
    ("a false maximum", "plain", statistics(0, maxValues={"id": 2}), {"statistics-hold-for-the-rows"}),
]
