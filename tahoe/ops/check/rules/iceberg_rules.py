"""Rules of tables with IcebergCompat features or UniForm."""

from __future__ import annotations

from collections.abc import Iterator

from tahoe.ops.check.rules.file_rules import statistics_of
from tahoe.ops.check.subjects.replayed_log import Step
from tahoe.ops.check.subjects.rule import Breaches, Broken, RuleList
from tahoe.ops.check.subjects.table_settings import Field, Settings
from tahoe.protocol.features import Feature

SETTINGS_RULES: RuleList[Settings] = RuleList()
RULES: RuleList[Step] = RuleList()


def active_version(settings: Settings) -> int | None:
    """Return the active IcebergCompat version, or None."""
    for version in (3, 2, 1):
        if settings.is_active(f"icebergCompatV{version}", f"delta.enableIcebergCompatV{version}"):
            return version
    return None


@SETTINGS_RULES.rule("Writer Requirements for IcebergCompatV2")
def iceberg_needs_column_mapping(settings: Settings) -> Breaches:
    """Column mapping is in the mode `name` or `id`."""
    version = active_version(settings)
    if version is not None and settings.mapping_mode not in ("name", "id"):
        yield f"icebergCompatV{version} is active, and the column mapping mode is {settings.mapping_mode}"


@SETTINGS_RULES.rule("Writer Requirements for IcebergCompatV2")
def iceberg_allows_no_vectors(settings: Settings) -> Breaches:
    """With version 1 the feature is not supported, with version 2 it is not active."""
    version = active_version(settings)
    if version == 1 and settings.supports(Feature.DELETION_VECTORS):
        yield "icebergCompatV1 is active, and the protocol supports deletionVectors"
    if version == 2 and settings.is_active(Feature.DELETION_VECTORS, "delta.enableDeletionVectors"):
        yield "icebergCompatV2 is active, and so are deletion vectors"


@SETTINGS_RULES.rule("Writer Requirements for IcebergCompatV2")
def one_iceberg_version_is_active(settings: Settings) -> Breaches:
    """At most one version of IcebergCompat is active."""
    active = [n for n in (1, 2, 3) if settings.is_active(f"icebergCompatV{n}", f"delta.enableIcebergCompatV{n}")]
    if len(active) > 1:
        yield f"the versions {active} of icebergCompat are all active"


@SETTINGS_RULES.rule("Writer Requirements for IcebergCompatV2")
def iceberg_types_are_allowed(settings: Settings) -> Breaches:
    """Column types are in the list of the version's section."""
    version = active_version(settings)
    if version is None:
        return
    for field in settings.fields:
        for name in _types(field.type):
            lacks = ("void", "variant")[: 1 if version == 3 else 2] + (() if version == 3 else ("geometry", "geography"))
            if name.partition("(")[0] in lacks or (version == 1 and name in ("array", "map")):
                yield f"icebergCompatV{version} is active, and column {field.name} has the type {name}"


def _types(kind: object) -> Iterator[str]:
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, dict):
        yield str(kind.get("type"))
        for inner in ("elementType", "keyType", "valueType"):
            if inner in kind:
                yield from _types(kind[inner])


@SETTINGS_RULES.rule("Writer Requirements for IcebergCompatV2")
def elements_keys_and_values_have_ids(settings: Settings) -> Breaches:
    """The ids are in `delta.columnMapping.nested.ids` of the nearest field above them."""
    if active_version(settings) not in (2, 3):
        return
    for field in settings.fields:
        stored = field.metadata.get("delta.columnMapping.nested.ids")
        ids = stored if isinstance(stored, dict) else {}
        for path in _nested(field):
            if not isinstance(ids.get(path), int):
                yield f"{path} of column {field.name} has no id"


def _nested(field: Field) -> Iterator[str]:
    """The names under which the ids of a field's elements, keys and values are stored."""

    def below(kind: object, path: str) -> Iterator[str]:
        if isinstance(kind, dict):
            for member, part in (("elementType", "element"), ("keyType", "key"), ("valueType", "value")):
                if member in kind:
                    yield f"{path}.{part}"
                    yield from below(kind[member], f"{path}.{part}")

    yield from below(field.type, field.physical[-1])


@SETTINGS_RULES.rule("Writer Requirements for IcebergCompatV2")
def uniform_needs_iceberg_compatibility(settings: Settings) -> Breaches:
    """A table with Iceberg metadata enabled has one of the IcebergCompat features."""
    formats = [name.strip().lower() for name in settings.property("delta.universalFormat.enabledFormats").split(",")]
    if "iceberg" in formats and active_version(settings) is None:
        yield "delta.universalFormat.enabledFormats asks for iceberg, and no icebergCompat feature is active"


@RULES.rule("Writer Requirements for IcebergCompatV2")
def iceberg_files_tell_their_records(step: Step) -> Breaches:
    """Every `add` has `numRecords`."""
    if active_version(step.settings) is None:
        return
    for value in step.commit.of("add"):
        if (statistics_of(value) or {}).get("numRecords") is None:
            yield Broken("icebergCompat is active, and the file has no numRecords", str(value.get("path")))
