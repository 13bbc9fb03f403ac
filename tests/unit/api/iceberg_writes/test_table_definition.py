"""Tables that Iceberg clients create: columns with the client's ids, and files that readers of both formats read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
import requests
from pyiceberg.exceptions import BadRequestError, CommitFailedException, ServiceUnavailableError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import tahoe
from tahoe.api.iceberg_writes.table_definition import delta_metadata
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.schema.mapping import explode
from tahoe.uniform.commits.commit_requests import NewTable
from tahoe.uniform.commits.schema_change import ids_of
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.interop.engines import canonical, read_deltalake

NESTED = Schema(
    NestedField(1, "id", LongType(), required=True, doc="the key"),
    NestedField(2, "price", DecimalType(9, 2)),
    NestedField(3, "at", TimestamptzType()),
    NestedField(4, "local", TimestampType()),
    NestedField(5, "tags", ListType(8, StringType())),
    NestedField(6, "sizes", MapType(9, StringType(), 10, DoubleType())),
    NestedField(7, "inner", StructType(NestedField(11, "day", DateType()), NestedField(12, "ok", BooleanType()))),
)


@pytest.fixture
def client(tmp_path: Path) -> LocalClient:
    return LocalClient(writable_catalog(tmp_path))


def test_columns_keep_their_ids_and_types(client: LocalClient, tmp_path: Path) -> None:
    created = client.create_table("default.t", NESTED, properties={"own": "kept", "comment": "about it"})
    assert created.schema() == NESTED
    assert created.properties["own"] == "kept"
    table = tahoe.Table(tmp_path / "t")
    assert [str(column.data_type) for column in table.schema()][:4] == ["long", "decimal(9,2)", "timestamp", "timestamp_ntz"]
    assert [column.physical_name for column in table.schema()] == ["id", "price", "at", "local", "tags", "sizes", "inner"]
    assert (table.snapshot().metadata.description, table.schema().field("id").nullable) == ("about it", False)


def test_ids_are_assigned_to_columns_that_are_numbered_from_0() -> None:
    inner = {"type": "struct", "fields": [{"id": 4, "name": "x", "type": "int", "required": False}]}
    kind = {"type": "list", "element-id": 3, "element": inner, "element-required": False}
    columns = [
        {"id": 0, "name": "a", "type": "long", "required": True, "doc": "first"},
        {"id": 1, "name": "b", "type": kind, "required": False},
        {"id": 2, "name": "part", "type": "string", "required": False},
    ]
    requested = NewTable("t", {"type": "struct", "fields": columns}, partition_by=((2, "part"),))
    created = delta_metadata(requested, "file:///t", SYSTEM_CLOCK)
    assert created.partition_columns == ("part",)
    assert sorted(ids_of(created.schema)) == [1, 2, 3, 4, 5]
    assert [(each.name, each.physical_name) for _, each in explode(created.schema)] == [
        (name, name) for name in ("a", "b", "x", "part")
    ]
    assert created.schema.field("a").metadata["comment"] == "first"
    with pytest.raises(InvalidRequest, match="column id 0"):
        delta_metadata(replace(requested, has_ids=True), "file:///t", SYSTEM_CLOCK)


def test_tables_of_format_3_have_vectors_and_the_names_of_row_ids_that_clients_write(client: LocalClient, tmp_path: Path) -> None:
    client.create_table("default.t", NESTED, properties={"format-version": "3"})
    properties = tahoe.Table(tmp_path / "t").snapshot().metadata.configuration
    assert properties["delta.enableDeletionVectors"] == "true"
    assert properties["delta.rowTracking.materializedRowIdColumnName"] == "_row_id"
    assert properties["delta.rowTracking.materializedRowCommitVersionColumnName"] == "_last_updated_sequence_number"
    taken = NewTable(
        "u", Schema(NestedField(1, "_Row_ID", LongType())).model_dump(by_alias=True), properties={"format-version": "3"}
    )
    configuration = delta_metadata(taken, "file:///u", SYSTEM_CLOCK).configuration
    assert configuration["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")


@pytest.mark.parametrize(("kind", "name"), [(TimeType(), "time"), (UUIDType(), "uuid"), (FixedType(4), "fixed")])
def test_a_type_that_delta_lacks_is_refused_by_name(client: LocalClient, tmp_path: Path, kind: object, name: str) -> None:
    with pytest.raises(BadRequestError, match=f"Column c .*{name}"):
        client.create_table("default.t", Schema(NestedField(1, "c", kind)))
    assert list(tmp_path.iterdir()) == []


def test_the_location_is_the_catalog_s(client: LocalClient, tmp_path: Path) -> None:
    assert client.create_table("default.t", NESTED, location=f"file://{tmp_path}/t").location() == f"file://{tmp_path}/t"
    with pytest.raises(BadRequestError, match="is in the folder of its name"):
        client.create_table("default.u", NESTED, location=f"file://{tmp_path}/elsewhere")


def test_properties_of_delta_and_unknown_format_versions_are_refused(client: LocalClient) -> None:
    with pytest.raises(BadRequestError, match=r"'delta\.appendOnly' is Delta's"):
        client.create_table("default.t", NESTED, properties={"delta.appendOnly": "true"})
    with pytest.raises(BadRequestError, match="no Iceberg format version 9"):
        client.create_table("default.t", NESTED, properties={"format-version": "9"})


# -- changes of an existing table ----------------------------------------------------------------------------------------------

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string()), ("part", pa.string())])


def rows(schema: pa.Schema, **columns: list[object]) -> pa.Table:
    return pa.table({name: columns.get(name, [None]) for name in schema.names}, schema=schema)


def assert_equal(client: LocalClient, root: Path, expected: list[dict[str, object]]) -> None:
    delta = tahoe.Table(root / "t").to_arrow()
    iceberg = client.load_table("default.t").scan().to_arrow()
    assert canonical(delta) == canonical(iceberg) == canonical(read_deltalake(str(root / "t")))
    assert sorted(delta.to_pylist(), key=repr) == sorted(expected, key=repr)


def test_columns_evolve_and_every_reader_sees_the_same_rows(client: LocalClient, tmp_path: Path) -> None:
    table = client.create_table("default.t", SCHEMA)
    table.append(pa.table({"id": [1], "name": ["a"], "part": ["p"]}, schema=SCHEMA))
    with table.update_schema() as update:
        update.add_column("more", StringType(), doc="added")
        update.rename_column("name", "title")
        update.move_first("part")
    table.append(rows(table.schema().as_arrow(), part=["q"], id=[2], title=["b"], more=["m"]))
    first: dict[str, object] = {"part": "p", "id": 1, "title": "a", "more": None}
    second: dict[str, object] = {"part": "q", "id": 2, "title": "b", "more": "m"}
    assert_equal(client, tmp_path, [first, second])
    delta = tahoe.Table(tmp_path / "t")
    assert [(column.name, column.field_id) for column in delta.schema()] == [("part", 3), ("id", 1), ("title", 2), ("more", 4)]
    newest = delta.history(2)[1]
    assert (newest["operation"], newest["operationParameters"]["client"]) == ("ICEBERG ALTER TABLE", "PyIceberg 0.12.0")


def test_a_column_with_the_name_of_a_dropped_one_is_empty(client: LocalClient, tmp_path: Path) -> None:
    table = client.create_table("default.t", SCHEMA)
    table.append(pa.table({"id": [1], "name": ["old"], "part": ["p"]}, schema=SCHEMA))
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("name")
    with table.update_schema() as update:
        update.add_column("name", StringType())
    assert_equal(client, tmp_path, [{"id": 1, "part": "p", "name": None}])
    table.append(rows(table.schema().as_arrow(), id=[2], part=["q"], name=["new"]))
    assert_equal(client, tmp_path, [{"id": 1, "part": "p", "name": None}, {"id": 2, "part": "q", "name": "new"}])


def test_columns_and_rows_change_in_one_commit(client: LocalClient, tmp_path: Path) -> None:
    table = client.create_table("default.t", SCHEMA)
    with table.transaction() as transaction:
        with transaction.update_schema() as update:
            update.add_column("more", LongType())
        schema = transaction.table_metadata.schema().as_arrow()
        transaction.append(rows(schema, id=[1], more=[5]))
        transaction.set_properties(owner="me", comment="about it")
    delta = tahoe.Table(tmp_path / "t")
    assert (delta.version(), delta.to_arrow()["more"].to_pylist()) == (1, [5])
    assert client.load_table("default.t").properties["owner"] == "me"
    assert delta.snapshot().metadata.description == "about it"
    with table.transaction() as transaction:
        transaction.remove_properties("owner", "comment")
    assert "owner" not in client.load_table("default.t").properties
    assert delta.snapshot().metadata.description is None


def test_types_become_wider_where_delta_allows_it(client: LocalClient, tmp_path: Path) -> None:
    table = client.create_table("default.t", SCHEMA)
    table.append(pa.table({"id": [1], "name": ["a"], "part": ["p"]}, schema=SCHEMA))
    with pytest.raises(BadRequestError, match="enableTypeWidening"), table.update_schema() as update:
        update.update_column("id", LongType())
    tahoe.Table(tmp_path / "t").set_properties({"delta.enableTypeWidening": "true"})
    with client.load_table("default.t").update_schema() as update:
        update.update_column("id", LongType())
    table = client.load_table("default.t")
    table.append(rows(table.schema().as_arrow(), id=[2**40]))
    actual = tahoe.Table(tmp_path / "t").to_arrow()
    assert sorted(actual["id"].to_pylist()) == [1, 2**40]
    assert canonical(actual) == canonical(table.scan().to_arrow())


def test_rules_of_the_table_protect_their_columns(client: LocalClient, tmp_path: Path) -> None:
    client.create_table("default.t", SCHEMA)
    tahoe.Table(tmp_path / "t").add_constraint("positive", "id > 0")
    with pytest.raises(BadRequestError, match="positive"), client.load_table("default.t").update_schema() as update:
        update.rename_column("id", "number")
    with pytest.raises(BadRequestError, match=r"'gc\.enabled' follows from the Delta table"):
        client.load_table("default.t").transaction().set_properties({"gc.enabled": "true"}).commit_transaction()
    with pytest.raises(BadRequestError, match="another partitioning"), client.load_table("default.t").update_spec() as spec:
        spec.add_identity("part")


KEYED = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "s", StructType(NestedField(4, "n", LongType(), required=True)), required=True),
    identifier_field_ids=[1],
)


def keyed(*ids: int, name: str = "n") -> pa.Table:
    return pa.table({"id": ids, "name": [name] * len(ids), "s": [{"n": each} for each in ids]}, schema=schema_to_pyarrow(KEYED))


def test_identifier_fields_are_kept(client: LocalClient, tmp_path: Path) -> None:
    table = client.create_table("default.t", KEYED)
    assert table.schema().identifier_field_names() == {"id"}
    table.append(keyed(1, 2))
    table.upsert(keyed(2, 3, name="new"))
    assert dict(table.scan().to_arrow().select(["id", "name"]).to_pandas().values) == {1: "n", 2: "new", 3: "new"}
    with table.update_schema() as update:
        update.set_identifier_fields("id", "s.n")
    delta = tahoe.Table(tmp_path / "t")
    delta.rename_column("id", "number")
    delta.append(pa.table({"number": [4], "name": ["d"], "s": [{"n": 4}]}))
    assert client.load_table("default.t").schema().identifier_field_names() == {"number", "s.n"}
    delta.change_column("number", nullable=True)
    assert client.load_table("default.t").schema().identifier_field_names() == {"s.n"}
    with client.load_table("default.t").update_schema() as update:
        update.set_identifier_fields()
    assert client.load_table("default.t").schema().identifier_field_ids == []
    assert "tahoe.identifierFieldIds" not in delta.snapshot().metadata.configuration
    assert delta.check(strict=True) == []


def test_columns_become_required_only_in_an_empty_table(client: LocalClient, tmp_path: Path) -> None:
    table = client.create_table("default.t", SCHEMA)
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("id", required=True)
        update.add_column("day", DateType(), required=True)
        update.set_identifier_fields("id", "day")
    assert table.schema().identifier_field_names() == {"id", "day"}
    delta = tahoe.Table(tmp_path / "t")
    with pytest.raises(InvalidRequest, match="day"):
        delta.append(pa.table({"id": [1], "name": ["a"], "part": ["p"]}))
    delta.append(pa.table({"id": [1], "name": ["a"], "part": ["p"], "day": pa.array([1], pa.date32())}))
    update = client.load_table("default.t").update_schema(allow_incompatible_changes=True)
    with pytest.raises(BadRequestError, match="becomes required"), update:
        update.update_column("name", required=True)
    assert delta.check(strict=True) == []


def test_identifier_fields_get_the_ids_of_their_columns() -> None:
    field = {"name": "id", "required": True, "type": "long"}
    fields = [{"id": 0, **field, "name": "other", "required": False}, {"id": 1, **field}]
    schema = {"type": "struct", "fields": fields, "identifier-field-ids": [1]}
    metadata = delta_metadata(NewTable("t", schema), "file:///t", SYSTEM_CLOCK)
    assert metadata.configuration["tahoe.identifierFieldIds"] == "2"


@pytest.mark.parametrize("wrong", [2, 3, 4, 5, 6, 9, "1", True, [1], 1.0])
def test_identifier_fields_that_no_column_can_be_are_refused(wrong: object) -> None:
    inner = {"type": "struct", "fields": [{"id": 5, "name": "n", "required": True, "type": "long"}]}
    fields = [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
        {"id": 3, "name": "f", "required": True, "type": "double"},
        {"id": 4, "name": "s", "required": False, "type": inner},
        {
            "id": 6,
            "name": "l",
            "required": True,
            "type": {"type": "list", "element-id": 7, "element": "long", "element-required": True},
        },
    ]
    schema = {"type": "struct", "fields": fields, "identifier-field-ids": [wrong]}
    with pytest.raises(InvalidRequest, match="identifier field"):
        delta_metadata(NewTable("t", schema), "file:///t", SYSTEM_CLOCK)


def test_namespaces_named_as_folders_of_iceberg_tables_are_listed(client: LocalClient) -> None:
    for name in ("lake", "lake.data", "lake.metadata"):
        client.create_namespace(name)
    assert client.list_namespaces() == [("default",), ("lake",)]
    client.create_table("lake.data.t", SCHEMA)
    client.create_table("lake.metadata.t", SCHEMA)
    assert client.list_namespaces() == [("default",), ("lake",)]
    assert client.list_namespaces("lake") == [("lake", "data"), ("lake", "metadata")]


# -- staged creation -----------------------------------------------------------------------------------------------------------


def test_a_table_is_created_with_its_first_rows(client: LocalClient, tmp_path: Path) -> None:
    with client.create_table_transaction("default.t", SCHEMA, properties={"own": "kept"}) as transaction:
        assert not (tmp_path / "t" / "_delta_log").exists()
        transaction.append(pa.table({"id": [1], "name": ["a"], "part": ["p"]}, schema=SCHEMA))
    assert_equal(client, tmp_path, [{"id": 1, "name": "a", "part": "p"}])
    table = client.load_table("default.t")
    delta, snapshot = tahoe.Table(tmp_path / "t"), table.current_snapshot()
    assert (delta.version(), table.properties["own"], table.metadata.table_uuid) == (
        0,
        "kept",
        UUID(delta.snapshot().metadata.id),
    )
    assert snapshot is not None
    assert delta.history()[0]["operationParameters"]["snapshotId"] == str(snapshot.snapshot_id)


def test_a_staged_table_loses_against_another_of_its_name(client: LocalClient, tmp_path: Path) -> None:
    transaction = client.create_table_transaction("default.t", SCHEMA)
    client.create_table("default.t", SCHEMA)
    with pytest.raises(CommitFailedException, match="The table exists already"):
        transaction.commit_transaction()


def test_the_folders_of_a_client_are_made_before_the_table_exists(client: LocalClient, tmp_path: Path) -> None:
    client.create_table_transaction("default.t", SCHEMA)
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == ["data", "metadata"]
    assert client.list_namespaces() == [("default",)], "a staged table is no namespace"
    (tmp_path / "t" / "data" / "left-over.parquet").write_bytes(b"")
    assert client.create_table("default.t", SCHEMA).location() == f"file://{tmp_path}/t"
    (tmp_path / "u").write_text("a file")
    with pytest.raises(ServiceUnavailableError, match="cannot be"):
        client.create_table_transaction("default.u", SCHEMA)


@pytest.mark.parametrize(
    "name", ["notes.txt", "data/_delta_log/0.json", "data/inner/_delta_log/0.json", "metadata/v1.metadata.json"]
)
def test_a_folder_with_other_files_is_refused(client: LocalClient, tmp_path: Path, name: str) -> None:
    (tmp_path / "t" / name).parent.mkdir(parents=True)
    (tmp_path / "t" / name).write_text("x")
    for create in (client.create_table, lambda *of: client.create_table_transaction(*of).commit_transaction()):
        with pytest.raises(BadRequestError, match=f"is not empty: it has {name}"):
            create("default.t", SCHEMA)


def test_defaults_are_not_changed_by_clients(client: LocalClient, tmp_path: Path) -> None:
    field = {"id": 1, "name": "id", "required": False, "type": "long"}
    with pytest.raises(Unsupported, match=r"id 1 of table .* another default \(write-default\)"):
        delta_metadata(NewTable("t", {"type": "struct", "fields": [{**field, "write-default": 5}]}), "file:///t", SYSTEM_CLOCK)
    client.create_table("default.t", pa.schema([("id", pa.int64())]), properties={"format-version": "3"})
    table = tahoe.Table(tmp_path / "t")
    table.add_feature("allowColumnDefaults")
    table.change_column("id", default="5")
    table.uniform.sync()
    shown = client.load_table("default.t")
    assert shown.schema().find_field("id").write_default == 5
    with shown.update_schema() as update:
        update.add_column("more", StringType())
    assert tahoe.Table(tmp_path / "t").schema().names == ["id", "more"]
    with pytest.raises(BadRequestError, match="another default"), client.load_table("default.t").update_schema() as update:
        update.set_default_value("id", 6)


def replacement(client: LocalClient, schema: Schema, *more: dict[str, object]) -> dict[str, object]:
    """Return the request of Iceberg's Java library to replace the table ``default.t``; PyIceberg has none."""
    metadata = client.load_table("default.t").metadata
    return {
        "requirements": [{"type": "assert-table-uuid", "uuid": str(metadata.table_uuid)}],
        "updates": [
            {"action": "remove-snapshot-ref", "ref-name": "main"},
            {"action": "add-schema", "schema": schema.model_dump(mode="json", by_alias=True)},
            {"action": "set-current-schema", "schema-id": -1},
            *more,
        ],
    }


def send(client: LocalClient, body: dict[str, object]) -> requests.Response:
    return client._session.post("http://127.0.0.1/v1/namespaces/default/tables/t", json=body)


SIMPLE = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()))
OTHER = Schema(NestedField(2, "name", LongType(), required=True), NestedField(3, "more", StringType()))


def test_a_table_is_replaced_without_its_rows_constraints_and_clustering(client: LocalClient, tmp_path: Path) -> None:
    client.create_table("default.t", SIMPLE).append(pa.table({"id": [1], "name": ["a"]}, SIMPLE.as_arrow()))
    table = tahoe.Table(tmp_path / "t")
    table.add_constraint("positive", "id > 0")
    table.cluster_by("id")
    table.set_properties({"delta.dataSkippingStatsColumns": "id", "own": "stays"})
    answer = send(client, replacement(client, OTHER, {"action": "set-properties", "updates": {"new": "set"}}))
    assert answer.status_code == 200, answer.text
    assert [field.field_id for field in client.load_table("default.t").schema().fields] == [2, 3]
    client.load_table("default.t").append(pa.table({"name": [7], "more": ["x"]}, OTHER.as_arrow()))
    assert canonical(table.to_arrow()) == canonical(client.load_table("default.t").scan().to_arrow())
    assert canonical(read_deltalake(str(tmp_path / "t"))) == canonical(table.to_arrow())
    assert table.to_arrow().to_pylist() == [{"name": 7, "more": "x"}]
    configuration = table.snapshot().metadata.configuration
    assert configuration["own"] == "stays"
    assert not [key for key in configuration if "constraints" in key or "StatsColumns" in key]
    assert table.detail()["clusteringColumns"] == []
    assert table.history(2)[-1]["operation"] == "ICEBERG REPLACE TABLE"
    assert table.snapshot(1).scan().to_arrow().to_pylist() == [{"id": 1, "name": "a"}]
    assert table.check(deep=True, strict=True) == []


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ([{"action": "set-default-spec", "spec-id": 7}], "no partition spec 7"),
        ([{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 5}], "the earlier snapshot 5"),
        ([{"action": "remove-snapshot-ref", "ref-name": "audit"}], "branch or tag 'audit'"),
    ],
)
def test_contradictory_replacements_are_refused(
    client: LocalClient, tmp_path: Path, more: list[dict[str, object]], problem: str
) -> None:
    client.create_table("default.t", SIMPLE)
    answer = send(client, replacement(client, OTHER, *more))
    assert (answer.status_code, problem in answer.text) == (400, True), answer.text
    assert tahoe.Table(tmp_path / "t").version() == 0


def test_a_replacement_uses_no_id_of_a_dropped_column(client: LocalClient, tmp_path: Path) -> None:
    table = client.create_table("default.t", SIMPLE)
    with table.update_schema() as update:
        update.delete_column("name")
    answer = send(client, replacement(client, OTHER))
    assert (answer.status_code, "column id 2" in answer.text) == (400, True), answer.text
    assert tahoe.Table(tmp_path / "t").version() == 1


def test_a_replacement_keeps_rows_that_another_writer_adds_meanwhile(
    client: LocalClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create_table("default.t", SIMPLE).append(pa.table({"id": [1], "name": ["a"]}, SIMPLE.as_arrow()))
    commit = tahoe.Table.commit

    def late(table: tahoe.Table, *arguments: object, **named: object) -> object:
        monkeypatch.undo()
        tahoe.Table(tmp_path / "t").append(pa.table({"id": [2], "name": ["b"]}))
        return commit(table, *arguments, **named)

    body = replacement(client, OTHER)
    monkeypatch.setattr(tahoe.Table, "commit", late)
    answer = send(client, body)
    assert (answer.status_code, "CommitFailedException" in answer.text) == (409, True), answer.text
    assert sorted(tahoe.Table(tmp_path / "t").to_arrow()["id"].to_pylist()) == [1, 2]
