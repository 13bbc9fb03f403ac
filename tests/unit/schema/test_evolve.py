"""Whether data fits a table, and the schema after the write."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest, SchemaMismatch
from tahoe.schema.evolve import (
    can_coerce,
    can_store,
    check_column_names,
    check_duplicates,
    check_holds_data,
    check_nested_fields,
    check_same_types,
    check_writable,
    merge_schemas,
    replace_schema,
    store_anything,
    without_void,
)
from tahoe.schema.mapping import ID_KEY, PHYSICAL_NAME_KEY
from tahoe.schema.types import ArrayType, DecimalType, MapType, PrimitiveType, StructField, StructType
from tahoe.schema.widening import Widening

P = PrimitiveType


def struct(*fields, **named):
    return StructType((*fields, *(StructField(name, data_type) for name, data_type in named.items())))


def required(name, data_type):
    return StructField(name, data_type, nullable=False)


TABLE = struct(id=P("long"), name=P("string"), place=struct(city=P("string"), zip=P("integer")))


def refused(data, table=TABLE):
    with pytest.raises(SchemaMismatch) as raised:
        check_writable(data, table)
    return raised.value


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        struct(name=P("string"), id=P("long")),
        struct(ID=P("integer"), NAME=P("void")),
        struct(place=struct(ZIP=P("short"))),
        struct(id=P("double"), name=P("date")),
        struct(),
    ],
)
def test_data_that_fits_by_name_and_by_store_assignment_is_let_in(data):
    check_writable(data, TABLE)


def test_a_column_that_the_table_lacks_is_named_with_the_tables_columns_and_the_remedy():
    error = refused(struct(id=P("long"), extra=P("date")))
    assert error.code == "DELTA_METADATA_MISMATCH"
    for part in ("'extra' (date)", "id long", "place struct<city:string,zip:integer>", "mergeSchema"):
        assert part in str(error)


def test_a_nested_field_that_the_table_lacks_is_named_with_its_path():
    error = refused(struct(place=struct(city=P("string"), street=P("string"))))
    for part in ("'place.street' (string)", "struct 'place'", "city string", "mergeSchema"):
        assert part in str(error)


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (struct(id=P("string")), ("'id'", "long in the table", "string in the data")),
        (struct(id=P("boolean")), ("'id'", "long", "boolean")),
        (struct(place=struct(zip=P("date"))), ("'place.zip'", "integer", "date")),
        (struct(place=P("string")), ("'place'", "struct<", "string")),
        (struct(name=ArrayType(P("string"))), ("'name'", "string", "array<string>")),
    ],
)
def test_types_that_do_not_go_together_are_named_with_the_column_and_the_remedy(data, parts):
    error = refused(data)
    assert error.code == "DELTA_FAILED_TO_MERGE_FIELDS"
    for part in (*parts, "Cast", "overwriteSchema"):
        assert part in str(error)


def test_types_inside_arrays_and_maps_are_compared_with_their_path():
    table = struct(a=ArrayType(struct(x=P("integer"))), m=MapType(P("string"), P("integer")))
    check_writable(struct(a=ArrayType(struct(X=P("byte"))), m=MapType(P("string"), P("short"))), table)
    assert "'a.element.x'" in str(refused(struct(a=ArrayType(struct(x=P("date")))), table))
    assert "'m.key'" in str(refused(struct(m=MapType(ArrayType(P("string")), P("integer"))), table))
    assert "'m.value'" in str(refused(struct(m=MapType(P("string"), P("boolean"))), table))


@pytest.mark.parametrize("wrapped", [lambda part: part, ArrayType, lambda part: MapType(P("string"), part)])
def test_a_nested_field_that_the_table_lacks_is_found_before_values_are_cast(wrapped):
    table, more = (
        struct(s=wrapped(struct(a=P("integer")))),
        struct(s=wrapped(struct(a=P("string"), b=P("date"))), other=P("date")),
    )
    check_nested_fields(struct(S=wrapped(struct(A=P("string")))), table)
    with pytest.raises(SchemaMismatch, match=r"'s.*\.b' \(date\)") as raised:
        check_nested_fields(more, table)
    assert raised.value.code == "DELTA_METADATA_MISMATCH"


INTEGRALS_IN_PARQUET = ("byte", "short", "integer")


@pytest.mark.parametrize("table", INTEGRALS_IN_PARQUET)
@pytest.mark.parametrize("data", INTEGRALS_IN_PARQUET)
def test_mergeschema_makes_a_column_as_wide_as_integers_that_parquet_stores_alike(table, data):
    before, rows = struct(s=struct(a=P(table))), struct(s=struct(a=P(data)))
    merged = merge_schemas(before, rows, Widening("NEVER", stored_alike=True))
    wider = max(table, data, key=INTEGRALS_IN_PARQUET.index)
    assert merged == struct(s=struct(a=P(wider)))
    check_same_types(rows, merged)
    if wider == table:
        return
    assert merge_schemas(before, rows) == before, "without a DataFrame write, the values are cast"
    with pytest.raises(SchemaMismatch, match=rf"'s\.a' has type {table} .* mergeSchema to make the column {data}") as raised:
        check_same_types(rows, before)
    assert raised.value.code == "DELTA_METADATA_MISMATCH"


@pytest.mark.parametrize(("table", "data"), [("integer", "long"), ("float", "double"), ("date", "timestamp_ntz")])
def test_mergeschema_does_not_widen_other_types_in_a_dataframe_write(table, data):
    merged = merge_schemas(struct(a=P(table)), struct(a=P(data)), Widening("NEVER", stored_alike=True), store_anything)
    assert merged == struct(a=P(table))
    with pytest.raises(SchemaMismatch) as raised:
        check_same_types(struct(a=P(data)), merged)
    assert raised.value.code == "DELTA_FAILED_TO_MERGE_FIELDS"


def test_a_void_column_takes_data_only_when_schemas_are_merged():
    assert "Set mergeSchema to make it string." in str(refused(struct(v=P("string")), struct(v=P("void"))))


def test_a_missing_column_must_be_nullable_at_every_depth():
    table = struct(required("id", P("long")), place=struct(required("zip", P("integer"))))
    assert refused(struct(), table).code == "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"
    error = refused(struct(id=P("long"), place=struct()), table)
    assert "'place.zip'" in str(error)
    check_writable(struct(id=P("long")), table)


@pytest.mark.parametrize(
    "data", [struct(StructField("a", P("long")), A=P("long")), struct(s=struct(StructField("b", P("long")), B=P("long")))]
)
def test_names_that_differ_in_case_only_are_refused(data):
    with pytest.raises(SchemaMismatch) as raised:
        check_duplicates(data)
    assert raised.value.code == "DELTA_DUPLICATE_COLUMNS_FOUND"


def test_the_same_name_in_two_structs_is_no_duplicate_nor_is_a_dotted_name():
    check_duplicates(struct(StructField("a.b", P("long")), a=struct(b=P("long")), c=struct(b=P("long"))))


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "{a", "a}", "(a", "a)", "a\nb", "a\tb", "a=b"])
def test_characters_that_parquet_readers_refuse_need_column_mapping(name):
    schema = struct(ok=P("long"), inner=struct(StructField(name, P("long"))))
    with pytest.raises(InvalidRequest) as raised:
        check_column_names(schema)
    assert raised.value.code == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    assert "delta.columnMapping.mode" in str(raised.value)
    check_column_names(schema, "name")


def test_other_characters_are_free():
    check_column_names(struct(StructField("ä-b.c%/`\"'", P("long"))))


STORABLE = [
    ("byte", "long"),
    ("long", "byte"),
    ("long", "float"),
    ("double", "integer"),
    ("integer", "string"),
    ("binary", "string"),
]
STORABLE += [
    ("date", "timestamp"),
    ("timestamp", "date"),
    ("timestamp_ntz", "timestamp"),
    ("void", "binary"),
    ("date", "timestamp_ntz"),
]
NOT_STORABLE = [("string", "long"), ("boolean", "integer"), ("long", "boolean"), ("date", "long"), ("long", "timestamp")]
NOT_STORABLE += [("string", "binary"), ("string", "date"), ("variant", "string"), ("long", "void")]


@pytest.mark.parametrize(("source", "target"), STORABLE)
def test_store_assignment_allows(source, target):
    assert can_store(P(source), P(target))


@pytest.mark.parametrize(("source", "target"), NOT_STORABLE)
def test_store_assignment_refuses(source, target):
    assert not can_store(P(source), P(target))


def test_decimals_are_numbers_to_store_assignment():
    assert can_store(DecimalType(10, 2), P("double"))
    assert can_store(P("long"), DecimalType(5, 2))
    assert can_store(DecimalType(10, 2), DecimalType(5, 1))
    assert not can_store(P("string"), DecimalType(5, 1))


def test_merging_adds_columns_and_nested_fields_at_the_end_and_nullable():
    data = struct(
        required("extra", struct(required("x", ArrayType(P("long"), False)))),
        place=struct(required("street", P("string")), city=P("string")),
        ID=P("integer"),
    )
    merged = merge_schemas(TABLE, data)
    assert merged.names == ["id", "name", "place", "extra"]
    assert merged.field("id").data_type == P("long")
    assert merged.field("place").data_type.names == ["city", "zip", "street"]
    assert merged.field("extra") == StructField("extra", struct(x=ArrayType(P("long"))))
    assert merged.resolve(("place", "street")).nullable


def test_merging_inside_arrays_and_maps_adds_fields_too():
    table = struct(a=ArrayType(struct(x=P("long")), False), m=MapType(P("string"), struct(x=P("long")), False))
    data = struct(a=ArrayType(struct(y=P("long"))), m=MapType(P("string"), struct(y=P("long"))))
    merged = merge_schemas(table, data)
    assert merged.field("a").data_type == ArrayType(struct(x=P("long"), y=P("long")), False)
    assert merged.field("m").data_type == MapType(P("string"), struct(x=P("long"), y=P("long")), False)


def test_merging_keeps_the_tables_nullability_and_metadata_and_drops_foreign_mapping():
    table = StructType((StructField("a", P("long"), False, {ID_KEY: 1, PHYSICAL_NAME_KEY: "col-1", "comment": "c"}),))
    data = StructType(
        (StructField("A", P("long")), StructField("b", P("long"), metadata={ID_KEY: 1, PHYSICAL_NAME_KEY: "col-1"}))
    )
    merged = merge_schemas(table, data)
    assert merged.fields[0] == table.fields[0]
    assert merged.fields[1].metadata == {}


def test_a_void_column_takes_the_type_of_the_data_and_keeps_its_own_against_void():
    table = struct(v=P("void"), a=P("long"))
    assert merge_schemas(table, struct(v=struct(required("x", P("date"))))).field("v").data_type == struct(x=P("date"))
    assert merge_schemas(table, struct(a=P("void"))) == table


def test_merging_types_that_cannot_be_stored_names_both_and_the_remedy():
    with pytest.raises(SchemaMismatch) as raised:
        merge_schemas(TABLE, struct(place=struct(zip=P("string"))))
    assert raised.value.code == "DELTA_FAILED_TO_MERGE_FIELDS"
    for part in ("'place.zip'", "integer", "string", "Cast"):
        assert part in str(raised.value)


def test_a_wider_type_is_cast_unless_the_table_widens_types():
    table, data = struct(a=P("integer"), l=ArrayType(P("float"))), struct(a=P("long"), l=ArrayType(P("double")))
    assert merge_schemas(table, data) == table
    assert merge_schemas(table, data, Widening("ALWAYS")) == data
    assert merge_schemas(data, table, Widening("ALWAYS")) == data


def test_overwriting_takes_the_schema_of_the_data_and_keeps_ids_of_common_columns():
    table = StructType((StructField("a", P("long"), False, {ID_KEY: 1, PHYSICAL_NAME_KEY: "col-1"}),))
    replaced = replace_schema(table, struct(required("b", P("date")), a=P("long")))
    assert replaced.names == ["b", "a"]
    assert replaced.field("b").nullable
    assert replaced.field("a").field_id == 1


VOID = P("void")


_EMPTY, _VOID_INSIDE = "DELTA_CANNOT_WRITE_EMPTY_SCHEMA", "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        (struct(v=VOID), f"{_EMPTY}.TABLE_ALL_VOID_COLUMNS"),
        (struct(), f"{_EMPTY}.TABLE_NO_COLUMNS"),
        (struct(a=P("long"), s=struct(v=VOID)), f"{_EMPTY}.STRUCT_ALL_VOID_FIELDS"),
        (struct(a=P("long"), s=struct()), f"{_EMPTY}.STRUCT_NO_FIELDS"),
        (struct(a=ArrayType(VOID), b=P("long")), _VOID_INSIDE),
        (struct(a=MapType(P("string"), VOID), b=P("long")), _VOID_INSIDE),
        (struct(a=ArrayType(struct(x=P("long"), v=VOID))), _VOID_INSIDE),
        (struct(s=struct(a=ArrayType(struct(x=P("long"), v=VOID)))), _VOID_INSIDE),
    ],
)
def test_a_table_that_data_files_cannot_hold_is_not_written(schema, code):
    with pytest.raises(SchemaMismatch) as raised:
        check_holds_data(schema)
    assert raised.value.code == code


def test_void_columns_are_left_out_of_files_at_every_depth():
    schema = struct(a=P("long"), v=VOID, s=struct(x=P("long"), v=VOID))
    check_holds_data(schema)
    assert without_void(schema) == struct(a=P("long"), s=struct(x=P("long")))


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ("string", {"byte", "integer", "double", "decimal(4,2)", "date", "timestamp", "timestamp_ntz", "binary", "string"}),
        ("long", {"byte", "integer", "double", "decimal(4,2)", "string"}),
        ("boolean", {"string", "boolean"}),
        ("date", {"date", "timestamp", "string"}),
        ("timestamp", {"date", "timestamp", "string"}),
        ("timestamp_ntz", {"timestamp_ntz", "string"}),
        ("binary", {"binary", "string"}),
    ],
)
def test_rows_of_streams_are_cast_as_spark_casts_unasked(source, allowed):
    names = ("byte", "integer", "double", "boolean", "date", "timestamp", "timestamp_ntz", "binary", "string")
    types = [*(P(name) for name in names), DecimalType(4, 2)]
    assert {str(target) for target in types if can_coerce(P(source), target)} == allowed


def test_another_cast_policy_applies_to_nested_fields_and_merged_schemas():
    table, data = struct(s=struct(a=P("integer"))), struct(s=struct(a=P("string"), b=P("date")))
    with pytest.raises(SchemaMismatch, match=r"'s\.a'"):
        check_writable(struct(s=struct(a=P("string"))), table)
    check_writable(struct(s=struct(a=P("string"))), table, store_anything)
    with pytest.raises(SchemaMismatch, match=r"'s\.a'"):
        merge_schemas(table, data)
    assert merge_schemas(table, data, stores=store_anything) == struct(s=struct(a=P("integer"), b=P("date")))
