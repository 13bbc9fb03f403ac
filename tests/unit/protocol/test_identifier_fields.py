"""The property with the ids of identifier fields."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.protocol.identifier_fields import (
    IDENTIFIER_FIELDS,
    identifier_fields,
    identifier_property,
    without_identifier_property,
)
from tahoe.schema.types import ArrayType, PrimitiveType, StructField, StructType

LONG = PrimitiveType("long")


def column(number: int, kind: object = LONG, nullable: bool = False) -> StructField:
    return StructField(f"c{number}", kind, nullable, {"delta.columnMapping.id": number})  # type: ignore[arg-type]


SCHEMA = StructType(
    (
        column(1),
        column(2, nullable=True),
        column(3, PrimitiveType("double")),
        column(4, StructType((column(5), column(6, nullable=True)))),
        column(7, StructType((column(8),)), nullable=True),
        column(9, ArrayType(LONG, False)),
    )
)


def test_columns_that_are_gone_or_optional_are_left_out() -> None:
    configuration = identifier_property(range(1, 20))
    assert configuration == {IDENTIFIER_FIELDS: ",".join(map(str, range(1, 20)))}
    assert identifier_fields(SCHEMA, configuration, "t") == [1, 5]
    assert identifier_fields(SCHEMA, {}, "t") == [] and identifier_property([]) == {}


@pytest.mark.parametrize("text", ["id", "1,", "-1", "1;5", "\u0661"])
def test_a_property_that_is_no_list_of_ids_is_an_error(text: str) -> None:
    with pytest.raises(CorruptTable, match=r"tahoe\.identifierFieldIds of table t"):
        identifier_fields(SCHEMA, {IDENTIFIER_FIELDS: text}, "t")


def test_the_property_is_found_and_removed_in_any_case() -> None:
    configuration = {IDENTIFIER_FIELDS.upper(): "5", "other": "x"}
    assert identifier_fields(SCHEMA, configuration, "t") == [5]
    assert without_identifier_property(configuration) == {"other": "x"}


def test_spaces_between_ids_are_allowed() -> None:
    assert identifier_fields(SCHEMA, {IDENTIFIER_FIELDS: "5, 1"}, "t") == [1, 5]
