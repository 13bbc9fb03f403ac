"""Violations in protocol, metadata and schema, and of Iceberg's requirements."""

from __future__ import annotations

from tests.unit.ops.check.planting import (
    INTEGER,
    Planted,
    both,
    configure,
    feature,
    mapped_as,
    put,
    schema,
    statistics,
    type_change,
)

PLANTED: list[Planted] = [
    # protocol rules
    ("an unknown version", "plain", put(0, "protocol", minWriterVersion=8), {"versions-are-known"}),
    (
        "reader features without writer features",
        "plain",
        put(0, "protocol", minReaderVersion=3, readerFeatures=[]),
        {"reader-features-need-writer-features"},
    ),
    ("features that may not be listed", "plain", put(0, "protocol", readerFeatures=[]), {"reader-features-are-listed"}),
    ("features that are not listed", "plain", put(0, "protocol", minWriterVersion=7), {"writer-features-are-listed"}),
    (
        "a feature of readers alone",
        "plain",
        both(feature(0, reader=["v2Checkpoint"])),
        {"reader-features-are-writer-features"},
    ),
    (
        "a feature of readers that these are not told",
        "plain",
        feature(0, "vacuumProtocolCheck"),
        {"features-stand-in-the-right-lists"},
    ),
    ("a feature that nobody knows", "plain", feature(0, "timeMachine"), {"feature-names-are-known"}),
    ("a feature twice", "plain", feature(0, "appendOnly"), {"features-are-listed-once"}),
    (
        "a property without its feature",
        "plain",
        configure(0, delta__enableInCommitTimestamps="true"),
        {"properties-in-use-have-their-feature"},
    ),
    (
        "a type without its feature",
        "plain",
        schema(0, lambda fields: fields.append({**INTEGER, "type": "timestamp_ntz"})),
        {"columns-in-use-have-their-feature"},
    ),
    (
        "tracking that is suspended",
        "tracked",
        configure(0, delta__rowTrackingSuspended="true"),
        {"row-tracking-is-not-suspended-and-enabled"},
    ),
    (
        "a materialised column of the table",
        "tracked",
        configure(0, delta__rowTracking__materializedRowIdColumnName="id"),
        {"row-tracking-names-its-columns"},
    ),
    # schema rules
    ("files that are not Parquet", "plain", put(0, "metaData", format={"provider": "orc", "options": {}}), {"files-are-parquet"}),
    (
        "a column that does not say whether it is nullable",
        "plain",
        schema(0, lambda fields: fields[1].pop("nullable")),
        {"fields-have-their-members"},
    ),
    (
        "an unknown type",
        "plain",
        schema(0, lambda fields: fields.append({**INTEGER, "type": "decimal(40,2)"})),
        {"types-are-known"},
    ),
    (
        "one name in two casings",
        "plain",
        schema(0, lambda fields: fields.append({**INTEGER, "name": "ID"})),
        {"column-names-are-unique"},
    ),
    ("a mapping mode that is none", "mapped", configure(0, delta__columnMapping__mode="position"), {"the-mapping-mode-is-known"}),
    (
        "a column without an id",
        "mapped",
        schema(0, lambda fields: fields.append({**INTEGER, "metadata": {"delta.columnMapping.physicalName": "other"}})),
        {"mapped-columns-have-ids"},
    ),
    (
        "an id twice",
        "mapped",
        schema(0, lambda fields: fields.append({**INTEGER, "type": "long", "metadata": mapped_as(1, "other")})),
        {"column-ids-are-unique"},
    ),
    (
        "a column without a physical name",
        "mapped",
        schema(0, lambda fields: fields.append({**INTEGER, "metadata": {"delta.columnMapping.id": 3_000}})),
        {"mapped-columns-have-physical-names", "the-highest-id-is-tracked"},
    ),
    (
        "a physical name twice",
        "mapped",
        both(
            schema(
                0,
                lambda fields: fields.append(
                    {**fields[0], "name": "again", "metadata": {**fields[0]["metadata"], "delta.columnMapping.id": 9}}
                ),
            ),
            configure(0, delta__columnMapping__maxColumnId="9"),
        ),
        {"physical-field-paths-are-unique", "columns-of-files-have-ids"},
    ),
    (
        "a highest id that is too low",
        "mapped",
        configure(0, delta__columnMapping__maxColumnId="1"),
        {"the-highest-id-is-tracked"},
    ),
    (
        "an invariant that is none",
        "plain",
        schema(0, lambda fields: fields[0]["metadata"].update({"delta.invariants": "id > 0"})),
        {"invariants-are-expressions"},
    ),
    (
        "a generation expression that is a number",
        "plain",
        both(
            feature(0, "generatedColumns"),
            schema(0, lambda fields: fields[0]["metadata"].update({"delta.generationExpression": 1})),
        ),
        {"generation-expressions-are-texts"},
    ),
    (
        "an empty constraint",
        "plain",
        both(feature(0, "checkConstraints"), configure(0, delta__constraints__positive=" ")),
        {"constraints-are-named-expressions"},
    ),
    (
        "an identity column that stands still",
        "plain",
        both(
            feature(0, "identityColumns"),
            schema(
                0,
                lambda fields: fields[0]["metadata"].update(
                    {"delta.identity.start": 1, "delta.identity.step": 0, "delta.identity.allowExplicitInsert": True}
                ),
            ),
        ),
        {"identity-columns-have-start-and-step"},
    ),
    (
        "a change of type that is no widening",
        "plain",
        both(
            feature(0, "typeWidening", reader=["typeWidening"]),
            schema(0, lambda fields: type_change(fields[0], {"fromType": "string", "toType": "long"})),
        ),
        {"type-changes-are-told-right"},
    ),
    (
        "an array of void",
        "plain",
        schema(
            0, lambda fields: fields.append({**INTEGER, "type": {"type": "array", "elementType": "void", "containsNull": True}})
        ),
        {"void-stands-alone"},
    ),
    # iceberg rules
    (
        "Iceberg without a row count",
        "iceberg",
        statistics(0, numRecords=...),
        {"iceberg-files-tell-their-records"},
    ),
    (
        "Iceberg and vectors",
        "iceberg",
        both(
            feature(0, "deletionVectors", reader=["deletionVectors", "columnMapping"]),
            configure(0, delta__enableDeletionVectors="true"),
        ),
        {"iceberg-allows-no-vectors"},
    ),
    (
        "a type that Iceberg has not",
        "iceberg",
        both(
            schema(0, lambda fields: fields.append({**INTEGER, "type": "void", "metadata": mapped_as(9, "other")})),
            configure(0, delta__columnMapping__maxColumnId="9"),
        ),
        {"iceberg-types-are-allowed"},
    ),
    (
        "an element without an id",
        "iceberg",
        both(
            schema(
                0,
                lambda fields: fields.append(
                    {
                        **INTEGER,
                        "type": {"type": "array", "elementType": "long", "containsNull": True},
                        "metadata": mapped_as(9, "other"),
                    }
                ),
            ),
            configure(0, delta__columnMapping__maxColumnId="9"),
        ),
        {"elements-keys-and-values-have-ids"},
    ),
    (
        "Iceberg asked for and not promised",
        "plain",
        configure(0, delta__universalFormat__enabledFormats="iceberg"),
        {"uniform-needs-iceberg-compatibility"},
    ),
]
