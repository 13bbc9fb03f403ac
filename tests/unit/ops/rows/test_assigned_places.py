"""The columns that the keys of a SET or VALUES clause name."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest, SchemaMismatch
from tahoe.ops.rows.assigned_places import Columns, UnresolvedColumn, assigned_places, check_assignable, lacks_fields, place_of
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType

INT, TEXT = PrimitiveType("integer"), PrimitiveType("string")


def struct(*names: str) -> StructType:
    return StructType(tuple(StructField(name, INT) for name in names))


SCHEMA = StructType(
    (
        StructField("id", INT),
        StructField("t", struct("a", "id")),
        StructField("s", StructType((StructField("n", struct("x")), StructField("l", ArrayType(struct("y"), True))))),
        StructField("l", ArrayType(struct("x"), True)),
        StructField("m", MapType(TEXT, INT, True)),
    )
)
TABLE = Columns.of(SCHEMA, ("spark_catalog", "db", "t"))


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("id", ("id",)),
        ("ID", ("id",)),
        ("t.id", ("id",)),  # the qualifier counts before the struct of that name
        ("db.t.id", ("id",)),
        ("spark_catalog.db.t.id", ("id",)),
        ("t.a", ("t", "a")),
        ("t.t.a", ("t", "a")),
        ("t.t.id", ("t", "id")),
        ("s.N.`x`", ("s", "n", "x")),
        ("db.t.s.n", ("s", "n")),
    ],
)
def test_a_key_names_a_column_or_a_field(key: str, path: tuple[str, ...]) -> None:
    assert place_of(key, [TABLE]).path == path


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("nothing", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("other.id", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("db.s.n", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("s.z", "FIELD_NOT_FOUND"),
        ("s.l.z", "FIELD_NOT_FOUND"),
        ("l.z", "FIELD_NOT_FOUND"),
        ("l.x", "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE"),
        ("s.l.y", "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE"),
        ("m.k", "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE"),
        ("id.a", "INVALID_EXTRACT_BASE_FIELD_TYPE"),
        ("id + 1", "TAHOE_NOT_ASSIGNABLE"),
        ("", "TAHOE_NOT_ASSIGNABLE"),
        ("s.", "TAHOE_NOT_ASSIGNABLE"),
    ],
)
def test_invalid_places_are_refused(key: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        place_of(key, [TABLE])
    assert caught.value.code == code


def test_letters_case_matters_where_the_session_sets_it() -> None:
    columns = Columns.of(SCHEMA, "t", case_sensitive=True)
    assert place_of("t.s.n", [columns]).path == ("s", "n")
    for key in ("ID", "T.id", "s.N"):
        with pytest.raises(InvalidRequest):
            place_of(key, [columns])


def test_a_column_that_the_target_lacks_may_be_the_sources() -> None:
    source = Columns.of(struct("id", "new"), "q")
    assert place_of("new", [TABLE, source]).path == ("new",)
    assert place_of("q.id", [TABLE, source]).path == ("id",)
    assert place_of("t.a", [TABLE, source]).path == ("t", "a")
    with pytest.raises(UnresolvedColumn):
        place_of("t.new", [TABLE, source])


def test_a_name_of_two_columns_is_refused() -> None:
    both = Columns((*TABLE.fields, (("q",), StructField("ID", INT))))
    with pytest.raises(InvalidRequest, match="AMBIGUOUS_REFERENCE"):
        place_of("id", [both])
    assert place_of("q.id", [both]).path == ("ID",)


@pytest.mark.parametrize("keys", [("id", "ID"), ("id", "t.id"), ("s", "s.n.x"), ("s.n.x", "db.t.s.n")])
def test_a_place_is_assigned_to_once(keys: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequest, match="DELTA_CONFLICT_SET_COLUMN"):
        assigned_places(keys, [TABLE])
    with pytest.raises(InvalidRequest, match="DELTA_DUPLICATE_COLUMNS_ON_INSERT"):
        assigned_places(keys, [TABLE], inserts=True)


def test_a_struct_needs_the_fields_of_the_one_that_it_is_assigned_to() -> None:
    check_assignable(struct("b", "A"), struct("a", "b"), ("s",))
    check_assignable(struct("a"), struct("a", "b"), ("s",), may_lack_fields=True)
    check_assignable(INT, struct("a"), ("s",))
    for value, target in [
        (struct("a"), struct("a", "b")),
        (ArrayType(struct("a"), True), ArrayType(struct("a", "b"), True)),
        (MapType(TEXT, struct("a"), True), MapType(TEXT, struct("a", "b"), True)),
    ]:
        with pytest.raises(SchemaMismatch, match="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"):
            check_assignable(value, target, ("s",))
        with pytest.raises(SchemaMismatch, match="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"):
            check_assignable(target, value, ("s",), may_lack_fields=True)


def test_fields_are_lacking_at_any_depth_of_structs() -> None:
    deep = StructType((StructField("n", struct("x", "y")),))
    assert not lacks_fields(deep, deep)
    assert lacks_fields(StructType((StructField("N", struct("x")),)), deep)
    assert not lacks_fields(StructType((StructField("n", struct("x", "y", "z")),)), deep)
