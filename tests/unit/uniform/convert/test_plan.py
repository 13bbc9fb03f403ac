"""Plans: the Iceberg snapshots for Delta commits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tahoe.protocol.actions import (
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    RemoveFile,
    SetTransaction,
)
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.uniform.convert.plan import DeltaCommit, FurtherCommits, Rebuild, combine_commits, plan_conversion

UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
SCHEMA = StructType(
    tuple(
        StructField(name, PrimitiveType("long"), True, {"delta.columnMapping.id": i, "delta.columnMapping.physicalName": f"c{i}"})
        for i, name in enumerate(("a", "b"), start=1)
    )
)
METADATA = Metadata("table-id", SCHEMA.to_json(), (), UNIFORM)


def add(path: str, data_change: bool = True) -> AddFile:
    return AddFile(path, {}, 1, 1, data_change, '{"numRecords":1}')


def remove(path: str, data_change: bool = True) -> RemoveFile:
    return RemoveFile(path, 1, data_change)


def commit(version: int, *actions: object, timestamp: int | None = None) -> DeltaCommit:
    info = [] if timestamp is None else [CommitInfo({"timestamp": timestamp})]
    return DeltaCommit(version, (*info, *actions))


def change(*commits: DeltaCommit) -> object:
    return combine_commits(commits, METADATA, 7, str)


@pytest.mark.parametrize(
    ("actions", "operation"),
    [
        ([add("a")], "append"),
        ([remove("a")], "delete"),
        ([add("a"), remove("b")], "overwrite"),
        ([add("a", False), remove("b", False)], "replace"),
        ([add("a", False), remove("b")], "overwrite"),
        ([add("a", False)], "overwrite"),
    ],
)
def test_a_commit_s_operation_is_named_as_iceberg_names_it(actions, operation):
    result = change(commit(3, *actions))
    if [type(a) for a in actions] == [AddFile] and not actions[0].data_change:
        operation = "replace"  # new statistics for a live file
    assert result.operation == operation


def test_commits_are_combined_into_their_net_change():
    result = change(
        commit(1, add("kept"), add("short-lived")),
        commit(2, remove("short-lived"), remove("old"), add("new")),
        commit(3, SetTransaction("app", 1)),
    )
    assert {item.path for item in result.adds} == {"kept", "new"}
    assert result.removed == {"old"}
    assert result.version == 3


def test_a_file_removed_and_restored_replaces_its_entry():
    result = change(commit(1, remove("a")), commit(2, add("a")))
    assert [item.path for item in result.adds] == ["a"]
    assert result.removed == {"a"}


def test_new_statistics_for_a_live_file_replace_its_entry():
    result = change(commit(1, add("a", data_change=False)))
    assert result.removed == {"a"}
    assert result.rearranges


def test_new_statistics_for_a_file_added_meanwhile_do_not_remove_it():
    result = change(commit(1, add("a")), commit(2, replace(add("a", data_change=False), size=9)))
    assert result.removed == frozenset()
    assert [item.size for item in result.adds] == [9]


def test_the_order_of_actions_within_a_commit_does_not_matter():
    firstm = change(commit(1, add("a"), remove("a")))
    second = change(commit(1, remove("a"), add("a")))
    assert firstm == second
    assert firstm.removed == {"a"}


def vector(rows: int) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("u", f"vector{rows}", 34, rows, 1)


def marked(path: str, rows: int | None, **changed: object) -> AddFile:
    return replace(add(path), deletion_vector=None if rows is None else vector(rows), **changed)


def unmarked(path: str, rows: int | None) -> RemoveFile:
    return replace(remove(path), deletion_vector=None if rows is None else vector(rows))


def test_a_file_that_only_gets_another_vector_stays():
    result = change(commit(1, unmarked("a", None), marked("a", 1)), commit(2, unmarked("a", 1), marked("a", 2)))
    assert (result.adds, result.removed, result.operation) == ((), frozenset(), "delete")
    assert [(item.url, item.before, item.add.deletion_vector) for item in result.marked] == [("a", None, vector(2))]
    result = change(commit(3, unmarked("a", 2), marked("a", 3), add("b")))
    assert [item.before for item in result.marked] == [vector(2)]
    assert result.operation == "overwrite"


def test_a_file_added_with_a_vector_is_not_an_append():
    assert change(commit(1, marked("a", 1))).operation == "overwrite"
    result = change(commit(1, add("a")), commit(2, unmarked("a", None), marked("a", 1)))
    assert [item.deletion_vector for item in result.adds] == [vector(1)]
    assert (result.marked, result.removed) == ((), frozenset())


def test_a_removed_file_with_a_vector_is_recorded():
    result = change(commit(1, unmarked("a", 4), unmarked("b", None)))
    assert (result.removed, result.with_vectors) == ({"a", "b"}, {"a"})


def test_a_file_that_loses_its_vector_or_gets_other_row_ids_is_replaced():
    result = change(commit(1, unmarked("a", 4), add("a")))
    assert (len(result.adds), result.removed, result.with_vectors) == (1, {"a"}, {"a"})
    result = change(commit(1, unmarked("a", 4), marked("a", 5, base_row_id=7)))
    assert (len(result.adds), result.with_vectors, result.marked) == (1, {"a"}, ())


def test_new_statistics_for_a_file_with_a_vector_rewrite_its_deletes():
    result = change(commit(1, marked("a", 4, data_change=False)))
    assert (result.removed, result.with_vectors, result.rearranges) == ({"a"}, {"a"}, True)


def test_the_newest_row_id_mark_is_used():
    marks = [DomainMetadata("delta.rowTracking", f'{{"rowIdHighWaterMark":{mark}}}') for mark in (9, 19)]
    assert change(commit(1, add("a"), marks[0]), commit(2, add("b"), marks[1]), commit(3)).row_id_mark == 19
    assert change(commit(1, add("a"))).row_id_mark is None


def test_a_commit_without_files_changes_nothing():
    result = change(commit(1, SetTransaction("app", 1)))
    assert result.is_empty


def test_all_commits_become_one_snapshot():
    plan = plan_conversion(METADATA, METADATA, [commit(1, add("a")), commit(2, add("b"))], timestamp_ms=5, file_url=str)
    assert isinstance(plan, FurtherCommits)
    assert [(item.version, item.timestamp_ms, len(item.adds)) for item in plan.changes] == [(2, 5, 2)]


def test_each_commit_becomes_a_snapshot_if_the_table_is_configured_so():
    asked = {**UNIFORM, "delta.universalFormat.config.iceberg.snapshot-per-commit": "TRUE"}
    target = replace(METADATA, configuration=asked)
    commits = [commit(1, add("a"), timestamp=3), commit(2, add("b"), timestamp=4)]
    plan = plan_conversion(target, target, commits, timestamp_ms=5, file_url=str)
    assert [(item.version, item.timestamp_ms, len(item.adds)) for item in plan.changes] == [(1, 3, 1), (2, 5, 1)]


def test_a_snapshot_per_commit_has_the_schema_of_its_commit():
    asked = {**UNIFORM, "delta.universalformat.config.iceberg.snapshot-per-commit": "true"}
    before = replace(METADATA, configuration=asked)
    wider = replace(before, schema_string=StructType((*SCHEMA, StructField("c", PrimitiveType("date")))).to_json())
    plan = plan_conversion(
        before, wider, [commit(1, add("a")), commit(2, wider), commit(3, add("b"))], timestamp_ms=5, file_url=str
    )
    assert [item.metadata for item in plan.changes] == [before, wider, wider]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (replace(METADATA, configuration={}), "UniForm was off"),
        (replace(METADATA, id="other"), "replaced"),
        (replace(METADATA, partition_columns=("a",)), "partitioning"),
        (replace(METADATA, configuration={**UNIFORM, "delta.enableIcebergCompatV3": "true"}), "the format version changed"),
    ],
)
def test_a_break_in_history_causes_a_rebuild(changed, reason):
    plan = plan_conversion(METADATA, METADATA, [commit(1, changed), commit(2, METADATA)], timestamp_ms=5, file_url=str)
    assert isinstance(plan, Rebuild)
    assert reason in plan.reason
