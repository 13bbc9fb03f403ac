"""Columns and fields matched by their places."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import SchemaMismatch
from tahoe.schema.positions import fits_by_name, renamed_by_position, with_fields_by_position
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType
from tahoe.schema.widening import Widening

INT, LONG, STRING, VOID = (PrimitiveType(name) for name in ("integer", "long", "string", "void"))


def struct(**named):
    return StructType(tuple(StructField(name, data_type) for name, data_type in named.items()))


TABLE = struct(a=INT, s=struct(x=INT, y=STRING))


@pytest.mark.parametrize(
    ("data", "table", "fits"),
    [
        (TABLE, TABLE, True),
        (struct(s=struct(y=STRING, x=INT), a=INT), TABLE, True),
        (struct(a=INT, s=struct(x=INT, y=STRING, z=LONG), b=INT), TABLE, True),
        (struct(A=INT), struct(a=INT), False),
        (struct(s=struct(X=INT)), struct(s=struct(x=INT)), False),
        (struct(a=INT), TABLE, False),
        (struct(s=struct(x=INT)), struct(s=struct(x=INT, y=INT)), False),
        (struct(a=LONG), struct(a=INT), False),
        (struct(a=LONG), struct(a=VOID), True),
        (struct(a=VOID), struct(a=INT), False),
        (struct(a=ArrayType(LONG)), struct(a=ArrayType(INT)), False),
        (struct(a=MapType(STRING, struct(y=INT, x=INT))), struct(a=MapType(STRING, struct(x=INT, y=INT))), True),
    ],
)
def test_data_fits_by_name_where_all_that_the_table_has_is_there_in_its_type(data, table, fits):
    assert fits_by_name(data, table) is fits


def test_a_type_that_the_table_will_take_fits():
    assert fits_by_name(struct(a=LONG), struct(a=INT), Widening("ALWAYS"))
    assert not fits_by_name(struct(a=INT), struct(a=LONG), Widening("ALWAYS"))


def test_columns_and_fields_get_the_names_at_their_places_and_keep_their_types():
    table = struct(a=INT, s=struct(x=INT, y=STRING), l=ArrayType(struct(p=INT)), m=MapType(STRING, struct(q=INT)))
    data = struct(
        one=STRING,
        two=struct(y=LONG, x=LONG, more=INT),
        three=ArrayType(struct(r=LONG)),
        four=MapType(INT, struct(r=LONG)),
        rest=INT,
    )
    assert renamed_by_position(data, table, "t") == struct(
        a=STRING, s=struct(x=LONG, y=LONG, more=INT), l=ArrayType(struct(p=LONG)), m=MapType(INT, struct(q=LONG)), rest=INT
    )


def test_only_fields_go_by_place_where_columns_go_by_name():
    data = struct(S=struct(y=STRING, x=INT), other=struct(q=INT))
    assert with_fields_by_position(data, TABLE, "t") == struct(S=struct(x=STRING, y=INT), other=struct(q=INT))


@pytest.mark.parametrize(
    ("data", "code", "parts"),
    [
        (struct(a=INT), "DELTA_INSERT_COLUMN_ARITY_MISMATCH", ("t: the table has 2 columns", "gives 1")),
        (struct(a=INT, s=struct(x=INT)), "DELTA_INSERT_COLUMN_ARITY_MISMATCH", ("column 's' has 2 fields", "gives 1")),
        (struct(a=INT, s=struct(x=struct(q=INT), y=INT)), "DELTA_COLUMN_STRUCT_TYPE_MISMATCH", ("'s.x'", "integer", "struct<q")),
    ],
)
def test_a_column_without_a_position_is_an_error_that_names_it(data, code, parts):
    with pytest.raises(SchemaMismatch) as raised:
        renamed_by_position(data, TABLE, "t")
    assert raised.value.code == code
    for part in parts:
        assert part in str(raised.value)


def test_a_value_may_be_given_for_a_struct_and_a_struct_for_a_value_of_a_column():
    data = struct(a=struct(q=INT), s=INT)
    assert renamed_by_position(data, TABLE, "t") == struct(a=struct(q=INT), s=INT)
