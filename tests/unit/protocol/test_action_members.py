"""The specification's required members of an action are required, at any depth; unknown members are ignored."""

from __future__ import annotations

import copy
import json
from typing import Any

import pyarrow as pa
import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.protocol.action_members import check_names, check_partition_keys, fault_of_files
from tahoe.protocol.actions import action_from_json
from tahoe.schema.types import PrimitiveType, StructField, StructType

VECTOR = {"storageType": "u", "pathOrInlineDv": "x" * 20, "offset": 1, "sizeInBytes": 40, "cardinality": 2}
FILE = {"path": "a", "partitionValues": {"p": None}, "size": 1, "dataChange": True}
WHOLE: dict[str, dict[str, Any]] = {
    "add": {**FILE, "modificationTime": 1, "deletionVector": VECTOR},
    "remove": {**FILE, "deletionTimestamp": 1, "extendedFileMetadata": True, "deletionVector": VECTOR},
    "cdc": FILE,
    "metaData": {
        "id": "i",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": '{"type":"struct","fields":[]}',
        "partitionColumns": [],
        "configuration": {},
    },
    "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
    "txn": {"appId": "a", "version": 1},
    "domainMetadata": {"domain": "d", "configuration": "", "removed": False},
    "checkpointMetadata": {"version": 1},
    "sidecar": {"path": "s", "sizeInBytes": 1, "modificationTime": 1},
}
OPTIONAL = {
    *[("metaData", "schemaString"), ("metaData", "format", "options"), ("remove", "deletionTimestamp")],
    *[("remove", "extendedFileMetadata"), ("add", "deletionVector"), ("remove", "deletionVector")],
    *[("add", "deletionVector", "offset"), ("remove", "deletionVector", "offset"), ("add", "partitionValues", "p")],
    *[("remove", "partitionValues", "p"), ("cdc", "partitionValues", "p")],
}
PATHS = [(kind, *path) for kind, value in WHOLE.items() for path in [(m,) for m in value] + [
    (m, inner) for m, v in value.items() if isinstance(v, dict) for inner in v
]]  # fmt: skip


def _parent(value: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for part in path[:-1]:
        value = value[part]
    return value


def _changed(path: tuple[str, ...], name: str | None, value: Any = None) -> dict[str, Any]:
    """The whole action, with one member under another name, or of another value, or gone."""
    whole = copy.deepcopy({path[0]: WHOLE[path[0]]})
    parent = _parent(whole, path)
    actual = parent.pop(path[-1])
    if name is not None:
        parent[name] = actual if value is None else value
    return whole


@pytest.mark.parametrize("kind", WHOLE)
def test_a_whole_action_is_taken(kind: str) -> None:
    assert action_from_json({kind: WHOLE[kind]}) is not None


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_an_action_without_a_demanded_member_is_refused_by_name(path: tuple[str, ...]) -> None:
    for damaged in (_changed(path, None), _null(path)):
        if path in OPTIONAL:
            assert action_from_json(damaged) is not None
        else:
            with pytest.raises(CorruptTable, match=f"'{path[-1]}'"):
                action_from_json(damaged)


def _null(path: tuple[str, ...]) -> dict[str, Any]:
    whole = copy.deepcopy({path[0]: WHOLE[path[0]]})
    _parent(whole, path)[path[-1]] = None
    return whole


@pytest.mark.parametrize("path", [path for path in PATHS if "partitionValues" not in path[:-1]], ids=".".join)
def test_a_member_spelled_in_another_case_is_no_absence(path: tuple[str, ...]) -> None:
    for name in {path[-1].lower(), path[-1].upper(), path[-1].capitalize()} - {path[-1]}:
        with pytest.raises(CorruptTable, match=f"'{name}'.*spell|spell.*'{name}'"):
            action_from_json(_changed(path, name))


@pytest.mark.parametrize("kind", [*WHOLE, "commitInfo"])
def test_an_action_spelled_in_another_case_is_no_unknown_one(kind: str) -> None:
    for name in {kind.lower(), kind.upper(), kind.capitalize()} - {kind}:
        with pytest.raises(CorruptTable, match=f"'{name}' is spelled '{kind}'"):
            action_from_json({name: WHOLE.get(kind, {})})


def test_unknown_members_and_actions_are_left_alone() -> None:
    assert action_from_json({"add": WHOLE["add"] | {"part_values": {"p": 1}, "backReference": {"path": 1}}}) is not None
    assert action_from_json({"addition": {"path": "a"}}) is None
    assert action_from_json({"commitInfo": {"TXNID": 1, "Timestamp": [1]}}) is not None


BEYOND = [
    *[(kind, "size", -1) for kind in ("add", "remove", "cdc")],
    *[("add", "baseRowId", -1), ("add", "defaultRowCommitVersion", -1)],
    *[("protocol", "minReaderVersion", -1), ("protocol", "minWriterVersion", -1), ("checkpointMetadata", "version", -1)],
    ("sidecar", "sizeInBytes", -1),
    *[(kind, "deletionVector", member, value) for kind in ("add", "remove") for member, value in [
        ("cardinality", -1), ("offset", -1), ("offset", 2**31), ("offset", 2**63), ("sizeInBytes", -1), ("sizeInBytes", 2**31),
        ("offset", 1.5), ("offset", "1"), ("storageType", 1), ("offset", True), ("cardinality", 2**63),
    ]],
    *[("metaData", "partitionColumns", [1]), ("metaData", "configuration", {"a": 1}), ("metaData", "format", "parquet")],
    *[("protocol", "readerFeatures", [None]), ("protocol", "writerFeatures", "x")],
]  # fmt: skip


@pytest.mark.parametrize("case", BEYOND, ids=str)
def test_a_value_outside_the_specification_is_refused_by_name(case: tuple[Any, ...]) -> None:
    *path, value = case
    whole = copy.deepcopy({path[0]: WHOLE[path[0]]})
    _parent(whole, tuple(path))[path[-1]] = value
    with pytest.raises(CorruptTable, match=f"'{path[-1]}'"):
        action_from_json(whole)


def test_an_inline_vector_has_no_offset() -> None:
    with pytest.raises(CorruptTable, match="inline"):
        action_from_json({"add": WHOLE["add"] | {"deletionVector": VECTOR | {"storageType": "i"}}})


def test_times_before_1970_are_times() -> None:
    assert action_from_json({"add": WHOLE["add"] | {"modificationTime": -1}}) is not None
    assert action_from_json({"remove": WHOLE["remove"] | {"deletionTimestamp": -1}}) is not None


MAP = pa.map_(pa.string(), pa.string())
SCHEMA = StructType((StructField("p", PrimitiveType("string")), StructField("q", PrimitiveType("string"))))


def _files(*maps: list[tuple[str, str | None]] | None) -> pa.Table:
    paths = [f"file-{row}" for row in range(len(maps))]
    return pa.table({"path": paths, "partitionValues": pa.chunked_array([pa.array(maps[:1], MAP), pa.array(maps[1:], MAP)])})


def test_keys_of_partition_values_may_come_in_any_order_and_with_others() -> None:
    whole = _files([("p", None), ("q", "1")], [("q", None), ("p", "1")], [("x", "1"), ("q", None), ("p", "")])
    check_partition_keys(whole, SCHEMA, ("p", "q"), "url")
    check_partition_keys(whole.slice(1), SCHEMA, ("q",), "url")
    check_partition_keys(_files([], None), SCHEMA, (), "url")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (None, "lack the partition column 'p'"),
        ([], "lack the partition column 'p'"),
        ([("p", "1")], "lack the partition column 'q'"),
        ([("p", "1"), ("Q", "1")], "have 'Q' where the table's partition column is 'q'"),
        ([("p", "1"), ("q", "1"), ("p", "2")], "name the partition column 'p' twice"),
    ],
)
def test_a_file_whose_partition_is_not_known_is_refused_by_path_and_column(values: Any, says: str) -> None:
    right = [("q", "1"), ("p", None)]
    with pytest.raises(CorruptTable, match="file-2") as caught:
        check_partition_keys(_files(right, right, values, right), SCHEMA, ("p", "q"), "url")
    assert says in caught.value.message


def test_columns_of_a_checkpoint_are_named_as_the_specification_names_them() -> None:
    check_names(
        [("add", "path"), ("add", "partitionValues", "key_value", "KEY"), ("add", "stats_parsed", "PATH"), ("other", "Add")]
    )
    for wrong in [("Add", "path"), ("add", "partitionvalues", "key"), ("add", "deletionVector", "Offset"), ("metadata", "id")]:
        with pytest.raises(CorruptTable, match="spells"):
            check_names([wrong])


def test_missing_and_negative_members_in_columns_are_reported() -> None:
    files = pa.Table.from_pylist([WHOLE["add"] | {"partitionValues": []}, WHOLE["add"] | {"partitionValues": []}])
    assert fault_of_files("add", files) is None
    assert "'size'" in str(fault_of_files("add", files.drop_columns("size")))
    assert "from 0" in str(fault_of_files("add", files.drop_columns("size").append_column("size", pa.array([1, -1]))))
    broken = pa.array([None, VECTOR | {"cardinality": -1}])
    assert "'cardinality'" in str(
        fault_of_files("add", files.drop_columns("deletionVector").append_column("deletionVector", broken))
    )
    assert json.dumps(WHOLE)  # the cases are JSON
