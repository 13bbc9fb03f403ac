"""Rules of protocol and properties: versions, lists of features, and features in use but not supported."""

from __future__ import annotations

from collections.abc import Iterator

from tahoe.ops.check.subjects.rule import Breaches, RuleList
from tahoe.ops.check.subjects.table_settings import Settings
from tahoe.protocol.features import FEATURES, Feature
from tahoe.protocol.properties import CONSTRAINT_PREFIX
from tahoe.schema.types import PrimitiveType

RULES: RuleList[Settings] = RuleList()


@RULES.rule("Protocol Evolution")
def versions_are_known(settings: Settings) -> Breaches:
    """Reader versions go from 1 to 3, writer versions from 1 to 7."""
    for name, version, most in (("minReaderVersion", settings.reader, 3), ("minWriterVersion", settings.writer, 7)):
        if not 1 <= version <= most:
            yield f"{name} is {settings.protocol.get(name)!r}, expected 1 to {most}"


@RULES.rule("Table Features for New and Existing Tables")
def reader_features_need_writer_features(settings: Settings) -> Breaches:
    """Reader version 3 comes with writer version 7."""
    if settings.reader == 3 and settings.writer < 7:
        yield f"minReaderVersion is 3 and minWriterVersion {settings.writer}, expected 7"


@RULES.rule("Table Features")
def reader_features_are_listed(settings: Settings) -> Breaches:
    """`readerFeatures` exists with reader version 3, and only then."""
    if (settings.reader == 3) != (settings.protocol.get("readerFeatures") is not None):
        yield f"minReaderVersion is {settings.reader}, and readerFeatures is {settings.protocol.get('readerFeatures')}"


@RULES.rule("Table Features")
def writer_features_are_listed(settings: Settings) -> Breaches:
    """`writerFeatures` exists with writer version 7, and only then."""
    if (settings.writer == 7) != (settings.protocol.get("writerFeatures") is not None):
        yield f"minWriterVersion is {settings.writer}, and writerFeatures is {settings.protocol.get('writerFeatures')}"


@RULES.rule("Supported Features")
def reader_features_are_writer_features(settings: Settings) -> Breaches:
    """A feature is never listed for readers alone."""
    alone = settings.reader_features - settings.writer_features
    if settings.reader == 3 and settings.writer == 7 and alone:
        yield f"readerFeatures lists {sorted(alone)}, which writerFeatures does not"


@RULES.rule("Supported Features")
def features_stand_in_the_right_lists(settings: Settings) -> Breaches:
    """Reader-writer features are in both lists, writer features in one."""
    for name in sorted((settings.reader_features | settings.writer_features) & FEATURES.keys()):
        row = FEATURES[name]
        implied = row.legacy is not None and settings.reader == row.legacy[0]
        if row.reader and name not in settings.reader_features and not implied and settings.writer == 7:
            yield f"{name} is a feature of readers too, and readerFeatures does not list it"
        if not row.reader and name in settings.reader_features:
            yield f"{name} is a feature of writers only, and readerFeatures lists it"


@RULES.rule("Valid Feature Names in Table Features")
def feature_names_are_known(settings: Settings) -> Breaches:
    """Names of features are in the specification, its proposals, or the reference."""
    for name in sorted((settings.reader_features | settings.writer_features) - FEATURES.keys()):
        yield f"no feature is called {name}"


@RULES.rule("Valid Feature Names in Table Features")
def features_are_listed_once(settings: Settings) -> Breaches:
    """A list of features is a set."""
    for name in ("readerFeatures", "writerFeatures"):
        listed = settings.protocol.get(name)
        if isinstance(listed, list) and len(set(map(str, listed))) != len(listed):
            yield f"{name} lists a feature twice: {sorted(map(str, listed))}"


@RULES.rule("Table Features")
def required_features_are_supported(settings: Settings) -> Breaches:
    """Features that a feature's section requires: `domainMetadata` for `rowTracking` and `clustering`, `columnMapping` for Iceberg."""
    for name in sorted(settings.writer_features & FEATURES.keys()):
        for needed in FEATURES[name].requires:
            if not settings.supports(needed):
                yield f"{name} is supported without {needed}, which it requires"


@RULES.rule("Active Features")
def properties_in_use_have_their_feature(settings: Settings) -> Breaches:
    """A property that needs a feature, without the feature, is ignored by other writers."""
    for name, key in _PROPERTIES:
        if settings.is_on(key) and not settings.supports(name):
            yield f"{key} is true, and the protocol does not support {name}"
    if settings.property("delta.columnMapping.mode", "none").lower() != "none" and not settings.supports(Feature.COLUMN_MAPPING):
        yield "delta.columnMapping.mode is set, and the protocol does not support columnMapping"
    if any(key.startswith(CONSTRAINT_PREFIX) for key in settings.configuration) and not settings.supports(
        Feature.CHECK_CONSTRAINTS
    ):
        yield "the table has CHECK constraints, and the protocol does not support checkConstraints"


_PROPERTIES = (
    *(
        (row.name, row.enabled_by_property)
        for row in FEATURES.values()
        if row.enabled_by_property is not None and row.enabled_by_property.startswith("delta.enable")
    ),
    (Feature.APPEND_ONLY, "delta.appendOnly"),
)


@RULES.rule("Active Features")
def columns_in_use_have_their_feature(settings: Settings) -> Breaches:
    """Types and metadata of columns that need a feature come with the feature."""
    used = {(feature, use) for field in settings.fields for feature, use in _needs(field.metadata, field.type)}
    for feature, use in sorted(used):
        if not any(map(settings.supports, FEATURES[feature].names)):
            yield f"a column has {use}, and the protocol does not support {feature}"


def _needs(metadata: dict[str, object], kind: object) -> Iterator[tuple[str, str]]:
    for part in _type_names(kind):
        for row in FEATURES.values():
            if row.types is not None and row.types(PrimitiveType(part)):
                yield row.name, f"the type {part}"
    for key in metadata:
        for feature, name in _KEYS.items():
            if key == name or (name.endswith(".") and key.startswith(name)):
                yield feature, key


_KEYS = {
    Feature.INVARIANTS: "delta.invariants",
    Feature.GENERATED_COLUMNS: "delta.generationExpression",
    Feature.IDENTITY_COLUMNS: "delta.identity.",
    Feature.ALLOW_COLUMN_DEFAULTS: "CURRENT_DEFAULT",
    Feature.TYPE_WIDENING: "delta.typeChanges",
}


def _type_names(kind: object) -> Iterator[str]:
    """Yield the primitive types of a column, except those of nested fields, which are fields themselves."""
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, dict):
        for inner in ("elementType", "keyType", "valueType"):
            yield from _type_names(kind.get(inner))


@RULES.rule("Row Tracking")
def row_tracking_is_not_suspended_and_enabled(settings: Settings) -> Breaches:
    """Row tracking is either suspended or enabled, not both."""
    if settings.is_on("delta.enableRowTracking") and settings.is_on("delta.rowTrackingSuspended"):
        yield "delta.enableRowTracking and delta.rowTrackingSuspended are both true"


@RULES.rule("Row IDs")
def row_tracking_names_its_columns(settings: Settings) -> Breaches:
    """If rows are tracked, the columns for materialized ids and versions have names, which no column of the table uses."""
    if not settings.is_active(Feature.ROW_TRACKING, "delta.enableRowTracking"):
        return
    taken = {field.path[0] for field in settings.fields} | {field.physical[0] for field in settings.fields}
    for kind in ("RowId", "RowCommitVersion"):
        key = f"delta.rowTracking.materialized{kind}ColumnName"
        name = settings.property(key)
        if not name:
            yield f"delta.enableRowTracking is true, and {key} is not there"
        elif name in taken:
            yield f"{key} is {name}, which is a column of the table"
