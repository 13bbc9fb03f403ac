"""Rules between versions: row ids, domains and clustering, names and ids of columns, partitioning under Iceberg."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tahoe.ops.check.rules.file_rules import statistics_of
from tahoe.ops.check.subjects.replayed_log import Step
from tahoe.ops.check.subjects.rule import Breaches, Broken, RuleList
from tahoe.protocol.features import Feature

RULES: RuleList[Step] = RuleList()


# -- domains ---------------------------------------------------------------------------------------------------------------


@RULES.rule("Domain Metadata")
def domains_need_the_feature(step: Step) -> Breaches:
    """`domainMetadata` is supported if a commit contains domains."""
    if step.commit.of("domainMetadata") and not step.settings.supports(Feature.DOMAIN_METADATA):
        yield "the commit has a domainMetadata action, and the protocol does not support domainMetadata"


@RULES.rule("Writer Requirements for Clustered Table")
def clustering_columns_are_columns(step: Step) -> Breaches:
    """The domain names columns of the schema, by their physical names."""
    physical = {field.physical for field in step.settings.fields} if step.settings.mapping_mode != "none" else set()
    names = physical or {field.path for field in step.settings.fields}
    for value in step.commit.of("domainMetadata"):
        if value.get("domain") != "delta.clustering" or value.get("removed"):
            continue
        try:
            columns = json.loads(value["configuration"])["clusteringColumns"]
        except (KeyError, ValueError, TypeError):
            yield f"the configuration of delta.clustering is {str(value.get('configuration'))[:60]}, expected clusteringColumns"
            continue
        for column in columns if isinstance(columns, list) else [columns]:
            path = tuple(column) if isinstance(column, list) else (column,)
            if path not in names:
                yield f"the clustering column {column} is no column of the table"


@RULES.rule("Writer Requirements for Clustered Table")
def clustered_tables_have_no_partitions(step: Step) -> Breaches:
    """A table has clustering columns or partition columns, not both."""
    if step.settings.supports(Feature.CLUSTERING) and step.settings.partition_columns and _changes_settings(step):
        yield f"the table is clustered and partitioned by {step.settings.partition_columns}"


def _changes_settings(step: Step) -> bool:
    return bool(step.commit.of("protocol") or step.commit.of("metaData"))


# -- row tracking ----------------------------------------------------------------------------------------------------------


def _tracked(step: Step) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the files that a commit adds to a table with row tracking, with their decoded paths."""
    if step.settings.supports(Feature.ROW_TRACKING) and not step.settings.is_on("delta.rowTrackingSuspended"):
        for value in step.commit.of("add"):
            yield step.before.path(value), value


@RULES.rule("Writer Requirements for Row Tracking")
def added_files_have_a_base_row_id(step: Step) -> Breaches:
    """Every `add` has a `baseRowId`, at least 0."""
    for path, value in _tracked(step):
        base = value.get("baseRowId")
        if base is None or (isinstance(base, int) and base < 0):
            yield Broken(f"rows are tracked, and baseRowId is {base}", path)


@RULES.rule("Writer Requirements for Row Tracking")
def added_files_have_a_row_commit_version(step: Step) -> Breaches:
    """`defaultRowCommitVersion` is the commit's version in a new `add`, and at most that in any `add`."""
    for path, value in _tracked(step):
        version, earlier = value.get("defaultRowCommitVersion"), step.before.ever_added.get(path)
        if version is None:
            yield Broken("rows are tracked, and defaultRowCommitVersion is not there", path)
        elif earlier is None and step.before.complete and version != step.commit.version:
            yield Broken(f"the file is new, and defaultRowCommitVersion is {version}, expected {step.commit.version}", path)


@RULES.rule("Writer Requirements for Row Tracking")
def files_keep_their_row_ids(step: Step) -> Breaches:
    """An `add` or `remove` of a path that was added before has the same values as that `add`."""
    for kind in ("add", "remove"):
        for value in step.commit.of(kind):
            earlier = step.before.ever_added.get(step.before.path(value))
            for name in ("baseRowId", "defaultRowCommitVersion") if earlier is not None else ():
                if earlier is not None and earlier.get(name) is not None and value.get(name) not in (None, earlier[name]):
                    yield Broken(
                        f"{name} of the file was {earlier[name]}, and the {kind} action says {value[name]}",
                        step.before.path(value),
                    )


@RULES.rule("Writer Requirements for Row Tracking")
def new_row_ids_are_beyond_the_mark(step: Step) -> Breaches:
    """A new file's ids begin above the high-water mark of the version before."""
    mark = step.before.high_water_mark
    for path, value in _tracked(step):
        base = value.get("baseRowId")
        if (
            mark is not None
            and isinstance(base, int)
            and path not in step.before.ever_added
            and base <= mark
            and step.before.complete
        ):
            yield Broken(f"the file is new, and its row ids begin at {base}; {mark} was given out already", path)


@RULES.rule("Writer Requirements for Row Tracking")
def the_high_water_mark_covers_the_commit(step: Step) -> Breaches:
    """`rowIdHighWaterMark` is at least the highest id that the commit assigns."""
    ends = [
        (value["baseRowId"] + ((statistics_of(value) or {}).get("numRecords") or 1) - 1, path)
        for path, value in _tracked(step)
        if isinstance(value.get("baseRowId"), int)
    ]
    if not ends:
        return
    highest, path = max(ends)
    mark = step.before.high_water_mark
    for value in step.commit.of("domainMetadata"):
        if value.get("domain") == "delta.rowTracking":
            mark = _mark(value)
    if mark is None or highest > mark:
        yield Broken(f"the row id {highest} is given out, and the high-water mark is {mark}", path)


@RULES.rule("Writer Requirements for Row Tracking")
def the_high_water_mark_never_sinks(step: Step) -> Breaches:
    """It is at least the highest id ever assigned."""
    last = step.before.high_water_mark
    for value in step.commit.of("domainMetadata"):
        mark = _mark(value)
        if value.get("domain") == "delta.rowTracking" and last is not None and (mark is None or mark < last):
            yield f"the row id high-water mark goes from {last} to {mark}"


def _mark(value: dict[str, Any]) -> int | None:
    try:
        mark = json.loads(value["configuration"])["rowIdHighWaterMark"]
    except (KeyError, ValueError, TypeError):
        return None
    return mark if isinstance(mark, int) else None


@RULES.rule("Writer Requirements for Row Tracking")
def row_ids_are_given_once(step: Step) -> Breaches:
    """Ids of the files of a version do not overlap."""
    touched = {path for path, _ in _tracked(step)}
    if not touched:
        return
    after = {path: value for (path, _), value in step.before.adds.items()}
    for value in step.commit.of("remove"):
        after.pop(step.before.path(value), None)
    after |= dict(_tracked(step))
    spans = sorted(
        (value["baseRowId"], value["baseRowId"] + ((statistics_of(value) or {}).get("numRecords") or 1), path)
        for path, value in after.items()
        if isinstance(value.get("baseRowId"), int)
    )
    for (_, end, first), (start, _, second) in pairwise(spans):
        if start < end and (first in touched or second in touched):
            yield Broken(f"its row ids overlap with those of {first}", second)


@RULES.rule("Row IDs")
def tracked_tables_have_all_row_ids(step: Step) -> Breaches:
    """When a commit enables row tracking, all files already have ids."""
    before = step.before.settings
    now = step.settings.is_active(Feature.ROW_TRACKING, "delta.enableRowTracking")
    if not now or before is None or before.is_active(Feature.ROW_TRACKING, "delta.enableRowTracking"):
        return
    touched = {step.before.path(value) for kind in ("add", "remove") for value in step.commit.of(kind)}
    for (path, _), value in step.before.adds.items():
        if value.get("baseRowId") is None and path not in touched:
            yield Broken("row tracking is enabled, and the file has no baseRowId", path)


# -- columns ---------------------------------------------------------------------------------------------------------------


@RULES.rule("Writer Requirements for Column Mapping")
def physical_names_stay(step: Step) -> Breaches:
    """While files of the version before stay, a column's physical name does not change."""
    before = step.before.settings
    if before is None or not step.commit.of("metaData") or not _files_stay(step):
        return
    if "none" in (before.mapping_mode, step.settings.mapping_mode):
        return
    key = "delta.columnMapping.id"
    names = {field.metadata.get(key): field.physical[-1] for field in before.fields}
    for field in step.settings.fields:
        earlier = names.get(field.metadata.get(key))
        if earlier is not None and earlier != field.physical[-1]:
            yield f"the physical name of column {field.name} was {earlier} and is {field.physical[-1]}"


@RULES.rule("Writer Requirements for Column Mapping")
def the_highest_id_never_sinks(step: Step) -> Breaches:
    """`delta.columnMapping.maxColumnId` grows with new columns."""
    before = step.before.settings
    if before is None or "none" in (before.mapping_mode, step.settings.mapping_mode):
        return
    texts = [each.property("delta.columnMapping.maxColumnId") for each in (before, step.settings)]
    if all(text.isdigit() for text in texts) and int(texts[1]) < int(texts[0]):
        yield f"delta.columnMapping.maxColumnId goes from {texts[0]} to {texts[1]}"


@RULES.rule("Type Widening")
def columns_change_their_type_by_widening(step: Step) -> Breaches:
    """While files of the version before stay, a column's new type is recorded in its `delta.typeChanges`."""
    before = step.before.settings
    if before is None or not step.commit.of("metaData") or not _files_stay(step):
        return
    types = {_identity(step, field): field for field in before.fields}
    for field in step.settings.fields:
        earlier = types.get(_identity(step, field))
        if earlier is None or not isinstance(earlier.type, str) or not isinstance(field.type, str):
            continue
        if earlier.type not in (field.type, "void") and "delta.typeChanges" not in field.metadata:
            yield f"column {field.name} was {earlier.type} and is {field.type}, with no word of it in delta.typeChanges"


def _files_stay(step: Step) -> bool:
    """Whether files of the version before stay. Those that a RESTORE leaves are of the restored version, with its columns."""
    if any(value.get("operation") == "RESTORE" for value in step.commit.of("commitInfo")):
        return False
    return bool(step.before.adds.keys() - {step.before.key(value) for value in step.commit.of("remove")})


def _identity(step: Step, field: Any) -> Any:
    mapped = step.settings.mapping_mode != "none"
    return (
        (field.metadata.get("delta.columnMapping.id") or field.physical) if mapped else tuple(part.lower() for part in field.path)
    )


@RULES.rule("Writer Requirements for IcebergCompatV2")
def partition_columns_keep_their_names(step: Step) -> Breaches:
    """A table that Iceberg reads is never replaced by a table with partition columns of other names."""
    before = step.before.settings
    if before is None or not step.commit.of("metaData"):
        return
    for version in ("V1", "V2", "V3"):
        feature, key = f"icebergCompat{version}", f"delta.enableIcebergCompat{version}"
        if before.is_active(feature, key) and step.settings.is_active(feature, key):
            names = [[each.physical_name(name) for name in each.partition_columns] for each in (before, step.settings)]
            if names[0] and before.partition_columns != step.settings.partition_columns and names[0] != names[1]:
                columns = step.settings.partition_columns
                yield f"{feature} is active, and the partition columns go from {before.partition_columns} to {columns}"
