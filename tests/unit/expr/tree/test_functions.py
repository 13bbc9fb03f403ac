"""The parameters of each function, and the type of its result."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.functions import FUNCTIONS, call
from tahoe.schema.types import ArrayType, DecimalType, MapType, PrimitiveType, StructField, StructType

SCHEMA = StructType(
    (
        *(
            StructField(name, PrimitiveType(name))
            for name in (
                "byte",
                "integer",
                "long",
                "float",
                "double",
                "string",
                "boolean",
                "date",
                "timestamp",
                "timestamp_ntz",
                "binary",
            )
        ),
        StructField("price", DecimalType(10, 2)),
        StructField("list", ArrayType(PrimitiveType("long"), True)),
        StructField("map", MapType(PrimitiveType("string"), PrimitiveType("date"), True)),
        StructField("place", StructType((StructField("X", PrimitiveType("double")),))),
    )
)


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("byte + integer", "integer"),
        ("long * float", "double"),
        ("integer / 2", "double"),
        ("integer div 2", "long"),
        ("price + price", "decimal(11,2)"),
        ("price * price", "decimal(21,4)"),
        ("price / price", "decimal(23,13)"),
        ("price + 1", "decimal(11,2)"),
        ("price + long", "decimal(23,2)"),
        ("price * double", "double"),
        ("string + 1", "long"),
        ("date + 1", "date"),
        ("floor(price)", "decimal(9,0)"),
        ("ceil(double)", "long"),
        ("round(price, 1)", "decimal(10,1)"),
        ("round(price, -3)", "decimal(9,0)"),
        ("round(integer)", "integer"),
        ("sqrt(byte)", "double"),
        ("byte & long", "long"),
        ("coalesce(byte, price)", "decimal(10,2)"),
        ("if(boolean, integer, long)", "long"),
        ("greatest(date, timestamp)", "timestamp"),
        ("concat(binary, binary)", "binary"),
        ("concat(binary, integer)", "string"),
        ("list[0]", "long"),
        ("map['a']", "date"),
        ("place.x", "double"),
        ("size(map)", "integer"),
        ("date_trunc('year', date)", "timestamp"),
        ("trunc(timestamp, 'year')", "date"),
        ("hour(timestamp_ntz)", "integer"),
        ("string LIKE 'a%'", "boolean"),
    ],
)
def test_a_function_gives_the_type_that_spark_gives(text: str, data_type: str) -> None:
    assert str(parse_expression(text, SCHEMA).data_type) == data_type


@pytest.mark.parametrize(
    "text",
    [
        "boolean + 1",
        "date * 2",
        "map = map",
        "double & 1",
        "list + 1",
        "size(string)",
        "array_contains(list, 'x')",
        "list['a']",
        "place.y",
        "round(double, integer)",
        "string LIKE string",
        "date_trunc('decade', timestamp)",
        "date_trunc('year', timestamp_ntz)",
        "date_format(date, 'EEE')",
        "named_struct(string, 1)",
        "concat(list, 'a')",
        "integer AND boolean",
        "length(list)",
    ],
)
def test_arguments_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_expression(text, SCHEMA)


def test_too_few_and_too_many_arguments_are_counted() -> None:
    for text, said in (
        ("abs()", "takes 1 arguments, found 0"),
        ("power(1, 2, 3)", "takes 2 arguments, found 3"),
        ("substring('a')", "takes 2 to 3 arguments, found 1"),
    ):
        with pytest.raises(InvalidRequest, match=said) as caught:
            parse_expression(text, SCHEMA)
        assert caught.value.code == "WRONG_NUM_ARGS"


def test_a_function_that_is_not_on_the_list_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="'java_method' is not on the list"):
        call("java_method", ())
    assert all(name == name.lower() for name in FUNCTIONS)
