"""ALTER TABLE's columns without Spark: added, dropped, renamed, changed and replaced columns, and refusals."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, MetadataChangedException, SchemaMismatch
from tahoe.ops.tables.alter_columns import stage_add_columns
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.column_edits import NewColumn
from tahoe.schema.types import ArrayType, PrimitiveType, StructField, StructType

ROWS = pa.table({"id": [1, 2], "s": [{"a": 1, "b": "x"}, None], "l": [[{"q": 1}], []], "p": ["k", "j"]})
MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def table(tmp_path) -> Table:
    """A table without column mapping, with a struct and an array of structs, partitioned by `p`."""
    return made(tmp_path / "plain", {})


@pytest.fixture
def mapped(tmp_path) -> Table:
    """The same with column mapping."""
    return made(tmp_path / "mapped", MAPPED)


def made(path, properties) -> Table:
    actual = Table.create(path, ROWS.schema, partition_by=["p"], properties=properties)
    actual.append(ROWS)
    return actual


def last(table: Table) -> tuple[str, dict]:
    entry = table.history(1)[0]
    return entry["operation"], entry["operationParameters"]


def refused(code: str, call, *arguments, **named) -> str:
    with pytest.raises(InvalidRequest) as error:
        call(*arguments, **named)
    assert error.value.code == code
    return error.value.message


def test_columns_are_added_where_they_are_asked_for_and_are_null_in_rows_that_are_there(table):
    table.add_columns(pa.schema([("c", pa.float64()), ("d", pa.string())]), after="id")
    assert last(table) == (
        "ADD COLUMNS",
        {
            "columns": '[{"column":{"name":"c","type":"double","nullable":true,"metadata":{}},"position":"AFTER id"},'
            '{"column":{"name":"d","type":"string","nullable":true,"metadata":{}},"position":"AFTER c"}]'
        },
    )
    table.add_columns(pa.schema([("z", pa.int32())]), inside="s", first=True)
    table.add_columns(pa.schema([("r", pa.date32())]), inside="l.element")
    assert str(table.schema()) == (
        "struct<id:long,c:double,d:string,s:struct<z:integer,a:long,b:string>,l:array<struct<q:long,r:date>>,p:string>"
    )
    assert table.to_arrow("id = 1").to_pylist() == [
        {"id": 1, "c": None, "d": None, "s": {"z": None, "a": 1, "b": "x"}, "l": [{"q": 1, "r": None}], "p": "k"}
    ]
    assert table.check(deep=True) == []


def test_columns_that_cannot_be_added_are_refused(table):
    first = pa.schema([("n", pa.int64())])
    refused("INVALID_FIELD_NAME", table.add_columns, first, inside="id")
    refused("UNRESOLVED_COLUMN.WITH_SUGGESTION", table.add_columns, first, inside="nope")
    refused("FIELD_NOT_FOUND", table.add_columns, first, after="nope")
    refused("FIELD_ALREADY_EXISTS", table.add_columns, pa.schema([("ID", pa.int64())]))
    refused("FIELD_ALREADY_EXISTS", table.add_columns, pa.schema([("A", pa.int64())]), inside="s")
    refused("COLUMN_ALREADY_EXISTS", table.add_columns, pa.schema([("x", pa.int64()), ("X", pa.int64())]))
    refused("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", table.add_columns, pa.schema([("a b", pa.int64())]))
    refused("DELTA_OPERATION_NOT_ALLOWED", table.add_columns, pa.schema([pa.field("n", pa.int64(), nullable=False)]))
    assert table.version() == 1


def test_columns_are_renamed_and_dropped_by_column_mapping_alone(table, mapped):
    assert "delta.columnMapping.mode" in refused("DELTA_UNSUPPORTED_RENAME_COLUMN", table.rename_column, "id", "key")
    assert "delta.columnMapping.mode" in refused("DELTA_UNSUPPORTED_DROP_COLUMN", table.drop_columns, ["id"])
    mapped.rename_column("P", "part")
    assert last(mapped) == ("RENAME COLUMN", {"oldColumnPath": "p", "newColumnPath": "part"})
    mapped.rename_column("s.a", "a.b")
    assert last(mapped)[1]["newColumnPath"] == "s.`a.b`"
    mapped.drop_columns(["s.b", "l"])
    assert last(mapped) == ("DROP COLUMNS", {"columns": '["s.b","l"]'})
    assert mapped.snapshot().partition_columns == ("part",)
    assert mapped.to_arrow("part = 'k'").to_pylist() == [{"id": 1, "s": {"a.b": 1}, "part": "k"}]
    assert mapped.drop_columns(["nope"], if_exists=True) == mapped.version() == 4
    refused("UNRESOLVED_COLUMN.WITH_SUGGESTION", mapped.drop_columns, ["nope"])
    refused("DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN", mapped.drop_columns, ["part"])
    refused("DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA", mapped.drop_columns, ["s.`a.b`"])
    for name in ("ID", "part", "PART"):
        refused("FIELD_ALREADY_EXISTS", mapped.rename_column, "part", name)
    assert mapped.check(deep=True) == []


def test_a_dropped_column_does_not_come_back_under_its_name(mapped):
    before = mapped.snapshot().config.properties.max_column_id
    mapped.drop_columns(["l"])
    mapped.add_columns(pa.schema([("l", pa.int64())]))
    assert mapped.schema().field("l").field_id == before + 1
    assert mapped.to_arrow(columns=["l"]).column("l").to_pylist() == [None, None]
    mapped.append(pa.table({"id": [3], "l": [4], "p": ["k"]}))
    assert sorted(mapped.to_arrow(columns=["l"]).column("l").to_pylist(), key=str) == [4, None, None]


def test_a_column_that_a_constraint_or_a_generated_column_reads_stays(mapped, tmp_path):
    mapped.add_constraint("positive", "s.a > 0 OR s.a IS NULL")
    for name in ("s", "s.a"):
        assert "positive" in refused("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", mapped.rename_column, name, "t")
        refused("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", mapped.drop_columns, [name])
    mapped.rename_column("s.b", "c")
    plus = {"delta.generationExpression": "id + 1"}
    fields = (StructField("id", PrimitiveType("long")), StructField("g", PrimitiveType("long"), metadata=plus))
    generated = Table.create(tmp_path / "generated", StructType(fields), properties=MAPPED)
    assert "g" in refused("DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE", generated.rename_column, "id", "key")
    generated.rename_column("g", "next")
    generated.drop_columns(["next"])
    generated.rename_column("id", "key")


def test_the_columns_with_statistics_follow_their_names(tmp_path):
    named = {**MAPPED, "delta.dataSkippingStatsColumns": "s.a,id,s.b"}
    table = made(tmp_path / "t", named)
    table.rename_column("s", "t")
    table.rename_column("id", "key")
    table.drop_columns(["t.b"])
    assert table.snapshot().metadata.configuration["delta.dataSkippingStatsColumns"] == "`t`.`a`,`key`"


def test_a_column_changes_comment_place_and_not_null(tmp_path):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("w", pa.null())])
    table = Table.create(tmp_path / "t", schema)
    table.change_column("id", comment="the key", nullable=True, after="v")
    assert last(table) == (
        "CHANGE COLUMN",
        {
            "column": '{"name":"id","type":"long","nullable":true,"metadata":{"comment":"the key"}}',
            "position": "AFTER v",
        },
    )
    assert table.schema().names == ["v", "id", "w"]
    table.append(pa.table({"v": ["x"], "id": pa.array([None], pa.int64())}))
    table.change_column("w", data_type=PrimitiveType("integer"))
    table.change_column("v", first=True)
    table.change_column("v", after="v")
    assert str(table.schema()) == "struct<v:string,id:long,w:integer>"
    message = refused("DELTA_NEW_NOT_NULL_VIOLATION", table.change_column, "id", nullable=False)
    assert "column id" in message and "1 row has NULL" in message
    refused("DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", table.change_column, "w", data_type=PrimitiveType("long"))


def test_elements_of_collections_have_neither_comment_nor_nullability(mapped):
    refused("DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY", mapped.change_column, "l.element", comment="x")
    refused("INVALID_FIELD_NAME", mapped.rename_column, "l.element", "e")
    refused("DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE", mapped.drop_columns, ["l.element"])
    for name, kind in (("s", "STRUCT"), ("l", "ARRAY")):
        refused("NOT_SUPPORTED_CHANGE_COLUMN", mapped.change_column, name, data_type=PrimitiveType("long"))
        expected = {"STRUCT": StructType((StructField("c", PrimitiveType("long")),)), "ARRAY": ArrayType(PrimitiveType("long"))}[
            kind
        ]
        refused(f"CANNOT_UPDATE_FIELD.{kind}_TYPE", mapped.change_column, name, data_type=expected)
    mapped.change_column("l.element.q", comment="x")
    assert json.loads(last(mapped)[1]["column"])["name"] == "l.element.q"


def test_columns_are_replaced_by_more_of_them_in_another_order(table, mapped):
    fields = {column.name: column for column in ROWS.schema}
    more = pa.struct([("b", pa.string()), ("new", pa.int64()), ("a", pa.int64())])
    expected = pa.schema([fields["p"], fields["id"], ("s", more), fields["l"], ("end", pa.int64())])
    for item in (table, mapped):
        ids = {column.name: column.field_id for column in item.schema()}
        item.replace_columns(expected)
        assert last(item)[0] == "REPLACE COLUMNS"
        assert item.schema().names == ["p", "id", "s", "l", "end"]
        assert {name: item.schema().field(name).field_id for name in ids} == ids
        assert item.to_arrow("id = 1").to_pylist()[0]["s"] == {"b": "x", "new": None, "a": 1}
    code = "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"
    refused(code, table.replace_columns, pa.schema([fields["id"], fields["p"]]))
    refused(code, table.replace_columns, pa.schema([("id", pa.int32()), *list(expected)[2:], fields["p"]]))
    refused("DELTA_AMBIGUOUS_DATA_TYPE_CHANGE", mapped.replace_columns, pa.schema([fields["id"], fields["p"], ("x", pa.int8())]))
    mapped.replace_columns(pa.schema([fields["id"], fields["p"]]))
    assert mapped.schema().names == ["id", "p"]


def test_rows_that_come_beside_it_do_not_conflict_and_a_writer_for_the_old_columns_does(table):
    transaction = table.begin()
    late = Table(table.url).begin()
    Table(table.url).append(ROWS)
    operation = stage_add_columns(transaction, transaction.existing(), [NewColumn((), StructField("n", PrimitiveType("long")))])
    assert table.commit(transaction, operation).version == 3
    assert table.to_arrow().num_rows == 4
    other = stage_add_columns(late, late.existing(), [NewColumn((), StructField("m", PrimitiveType("long")))])
    with pytest.raises(MetadataChangedException):
        table.commit(late, other)


def test_a_name_given_twice_is_a_mismatch_of_schemas(table):
    with pytest.raises(SchemaMismatch):
        table.add_columns(pa.schema([("n", pa.int64()), ("N", pa.int64())]))


@pytest.mark.parametrize("inside", ["", "s"])
@pytest.mark.parametrize("way", ["add", "append"])
def test_a_variant_column_enables_its_feature_on_an_existing_table(table, way, inside) -> None:
    """As on delta-spark 4.4.0."""
    added = StructType((StructField("n", PrimitiveType("variant")),))
    if way == "add":
        table.add_columns(added, inside=inside)
    else:
        rows = pa.Table.from_pylist([{"id": 3, "p": "k"}]).append_column(
            "n", pa.nulls(1, to_arrow_type(added.fields[0].data_type))
        )
        table.append(rows, merge_schema=True)
    assert "variantType" in table.snapshot().config.features
    assert table.check() == []


@pytest.mark.parametrize(
    ("feature", "column", "inside"),
    [("timestampNtz", "timestamp_ntz", ""), ("timestampNtz", "timestamp_ntz", "s")],
)
@pytest.mark.parametrize("way", ["add", "append"])
def test_a_table_that_is_there_must_be_asked_before_a_type_shuts_readers_out(table, way, feature, column, inside) -> None:
    """As in the reference, which enables such a feature by itself for new tables alone."""
    added = StructType((StructField("n", PrimitiveType(column)),))

    def change() -> int:
        if way == "add":
            return table.add_columns(added, inside=inside)
        rows = pa.Table.from_pylist([{"id": 3, "p": "k"}]).append_column(
            "n", pa.nulls(1, to_arrow_type(added.fields[0].data_type))
        )
        return table.append(rows, merge_schema=True)

    said = refused("DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT", change)
    assert f"'delta.feature.{feature}' = 'supported'" in said
    table.add_feature(feature)
    change()
    table.add_columns(StructType((StructField("n2", PrimitiveType(column)),)))
    assert feature in Table.create(table.url + "-new", added).snapshot().config.features
