"""Rules of the file entries of a commit: paths, partition values, statistics, deletion vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tahoe.base.exceptions import TahoeError
from tahoe.ops.check.subjects.replayed_log import Step, unique_id
from tahoe.ops.check.subjects.rule import Breaches, Broken, RuleList
from tahoe.protocol.features import Feature
from tahoe.protocol.partition import deserialize
from tahoe.schema.types import schema_from_json
from tahoe.store.location import decode_path

RULES: RuleList[Step] = RuleList()


def statistics_of(add: dict[str, Any]) -> dict[str, Any] | None:
    """Return the statistics of an `add`; None if they are not a JSON object."""
    try:
        statistics = json.loads(add["stats"]) if isinstance(add.get("stats"), str) else {}
    except (ValueError, RecursionError):
        return None
    return statistics if isinstance(statistics, dict) else None


def _files(step: Step) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in ("add", "remove", "cdc"):
        for value in step.commit.of(kind):
            yield str(value.get("path")), value


@RULES.rule("Add File and Remove File")
def paths_are_encoded_and_lead_to_files(step: Step) -> Breaches:
    """A URI, relative to the table's root or absolute."""
    for path, _ in _files(step):
        try:
            decode_path(path, step.before.root, outside=True)
        except TahoeError as error:
            yield Broken(error.message, path)


@RULES.rule("Data Files")
def data_files_stand_in_visible_folders(step: Step) -> Breaches:
    """No part of a folder's name begins with an underscore, except for partition columns with such a name."""
    for value in step.commit.of("add"):
        path = step.before.path(value)
        hidden = [part for part in path.split("/")[:-1] if part.startswith("_") and "=" not in part]
        if hidden and "://" not in path and not path.startswith("_change_data/"):
            yield Broken(f"the data file is in the hidden folder {hidden[0]}", path)


@RULES.rule("Consistency Between Table Metadata and Data Files")
def files_have_a_value_of_each_partition_column(step: Step) -> Breaches:
    """The keys are exactly the physical names."""
    expected = {step.settings.physical_name(name) for name in step.settings.partition_columns}
    for value in (*step.commit.of("add"), *step.commit.of("cdc")):
        values = value.get("partitionValues")
        if isinstance(values, dict) and values.keys() != expected:
            yield Broken(
                f"the file has values of {sorted(values)}, and the partition columns are {sorted(expected)}",
                str(value.get("path")),
            )


@RULES.rule("Partition Value Serialization")
def partition_values_can_be_read(step: Step) -> Breaches:
    """Each value can be parsed as the type of its column."""
    try:
        schema = schema_from_json(json.dumps(step.settings.schema))
    except TahoeError:
        return  # reported by the rules of the schema
    for name in step.settings.partition_columns:
        if name not in step.settings.columns:
            continue
        kind, physical = schema.field(name).data_type, step.settings.physical_name(name)
        for value in (*step.commit.of("add"), *step.commit.of("cdc")):
            values = value.get("partitionValues")
            text = values.get(physical) if isinstance(values, dict) else None
            try:
                deserialize(text, kind)
            except TahoeError:
                yield Broken(
                    f"the value {text!r:.60} of partition column {name} is no {step.settings.columns[name].type}",
                    str(value.get("path")),
                )


# -- statistics ------------------------------------------------------------------------------------------------------------


@RULES.rule("Per-file Statistics")
def statistics_are_an_object(step: Step) -> Breaches:
    """Statistics are a JSON object whose members have the types of the section."""
    for value in step.commit.of("add"):
        statistics = statistics_of(value)
        if statistics is None:
            yield Broken(f"the statistics are no JSON object: {str(value['stats'])[:60]}", str(value.get("path")))
            continue
        for name, kind in (("minValues", dict), ("maxValues", dict), ("nullCount", dict), ("tightBounds", bool)):
            if statistics.get(name) is not None and not isinstance(statistics[name], kind):
                yield Broken(f"{name} of the statistics is {statistics[name]!r:.60}", str(value.get("path")))


@RULES.rule("Per-file Statistics")
def record_counts_are_counts(step: Step) -> Breaches:
    """`numRecords` is a whole number from 0."""
    for value in step.commit.of("add"):
        count = (statistics_of(value) or {}).get("numRecords")
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
            yield Broken(f"numRecords is {count!r:.40}", str(value.get("path")))


@RULES.rule("Per-file Statistics")
def null_counts_are_within_the_records(step: Step) -> Breaches:
    """Null counts are from 0 to `numRecords`."""
    for value in step.commit.of("add"):
        statistics = statistics_of(value) or {}
        records = statistics.get("numRecords")
        for path, count in _leaves(statistics.get("nullCount"), ()):
            if not isinstance(count, int) or count < 0 or (isinstance(records, int) and count > records):
                yield Broken(f"nullCount of {'.'.join(path)} is {count!r:.40} of {records} records", str(value.get("path")))


@RULES.rule("Per-file Statistics")
def minima_do_not_exceed_maxima(step: Step) -> Breaches:
    """Compares numbers and texts; texts only within their prefixes."""
    for value in step.commit.of("add"):
        statistics = statistics_of(value) or {}
        most = dict(_leaves(statistics.get("maxValues"), ()))
        for path, least in _leaves(statistics.get("minValues"), ()):
            greatest = most.get(path)
            numbers = isinstance(least, (int, float)) and isinstance(greatest, (int, float))
            if numbers and not isinstance(least, bool) and least > greatest:
                yield Broken(
                    f"of {'.'.join(path)} the least value is {least!r:.40} and the greatest {greatest!r:.40}",
                    str(value.get("path")),
                )


@RULES.rule("Writer Requirement for Deletion Vectors")
def files_with_vectors_tell_their_records(step: Step) -> Breaches:
    """Files with vectors have `numRecords`."""
    for value in step.commit.of("add"):
        if value.get("deletionVector") is not None and (statistics_of(value) or {}).get("numRecords") is None:
            yield Broken("the file has a deletion vector and no numRecords", str(value.get("path")))


def _leaves(tree: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(tree, dict):
        for name, inner in tree.items():
            yield from _leaves(inner, (*path, name))
    elif path:
        yield path, tree


# -- deletion vectors ------------------------------------------------------------------------------------------------------


def _vectors(step: Step) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in ("add", "remove"):
        for value in step.commit.of(kind):
            if isinstance(value.get("deletionVector"), dict):
                yield str(value.get("path")), value["deletionVector"]


@RULES.rule("Deletion Vectors")
def vectors_need_the_feature(step: Step) -> Breaches:
    """`deletionVectors` is supported if a file has a vector."""
    for value in step.commit.of("add"):
        if value.get("deletionVector") is not None and not step.settings.supports(Feature.DELETION_VECTORS):
            yield Broken(
                "the file has a deletion vector, and the protocol does not support deletionVectors", str(value.get("path"))
            )


@RULES.rule("Deletion Vectors")
def new_vectors_are_allowed(step: Step) -> Breaches:
    """New ones are only written while `delta.enableDeletionVectors` is true. An earlier one may come back, and a clone has its source's."""
    if step.settings.is_on("delta.enableDeletionVectors") or not (step.before.complete or step.commit.version == 0):
        return
    if any(value.get("operation") == "CLONE" for value in step.commit.of("commitInfo")):
        return
    if not step.settings.supports(Feature.DELETION_VECTORS):
        return  # reported by another rule
    for value in step.commit.of("add"):
        vector = unique_id(value.get("deletionVector"))
        if vector and vector not in step.before.vectors:
            yield Broken("the deletion vector is new, and delta.enableDeletionVectors is not true", str(value.get("path")))


@RULES.rule("Deletion Vector Descriptor Schema")
def storage_types_are_known(step: Step) -> Breaches:
    """The type is ``u``, ``i`` or ``p``."""
    for path, vector in _vectors(step):
        if vector.get("storageType") not in ("u", "i", "p"):
            yield Broken(f"the storage type of the deletion vector is {vector.get('storageType')!r:.20}", path)


@RULES.rule("Deletion Vector Descriptor Schema")
def inline_vectors_have_no_offset(step: Step) -> Breaches:
    """Inline vectors have no offset, and no offset in the log is negative."""
    for path, vector in _vectors(step):
        offset = vector.get("offset")
        if offset is not None and (vector.get("storageType") == "i" or (isinstance(offset, int) and offset < 0)):
            yield Broken(f"the deletion vector of storage type {vector.get('storageType')} has the offset {offset}", path)


@RULES.rule("Deletion Vector Descriptor Schema")
def cardinalities_are_within_the_records(step: Step) -> Breaches:
    """A vector removes at least one row, and no more than there are."""
    for value in step.commit.of("add"):
        vector, records = value.get("deletionVector"), (statistics_of(value) or {}).get("numRecords")
        dead = vector.get("cardinality") if isinstance(vector, dict) else None
        if isinstance(dead, int) and (dead < 1 or (isinstance(records, int) and dead > records)):
            yield Broken(f"the deletion vector removes {dead} of {records} rows", str(value.get("path")))
