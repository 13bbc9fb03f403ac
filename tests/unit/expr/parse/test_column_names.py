"""The meaning of a name, in one schema and in two."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.column_names import ColumnNames
from tahoe.schema.types import PrimitiveType, StructField, StructType

LONG = PrimitiveType("long")
PLACE = StructType((StructField("X", LONG),))
ONE = StructType((StructField("Id", LONG), StructField("place", PLACE)))
OTHER = StructType((StructField("id", LONG), StructField("new", LONG), StructField("source", PLACE)))


def test_letters_case_does_not_matter_and_the_schemas_spelling_is_given() -> None:
    names = ColumnNames(ONE)
    actual = names.reference(("PLACE", "x"), "PLACE.x")
    assert (actual.path, actual.data_type, actual.qualifier) == (("place", "X"), LONG, None)
    assert names.reference(("PLACE", "x"), "PLACE.x") is actual, "it is looked up once"


def test_a_name_that_is_nowhere_is_reported_with_those_there_are() -> None:
    for schemas, known in ((ONE, "Id, place"), ({"target": ONE, "source": OTHER}, "target.Id, target.place, source.id")):
        with pytest.raises(InvalidRequest, match=known) as caught:
            ColumnNames(schemas).reference(("none",), "none")
        assert caught.value.code == "DELTA_COLUMN_NOT_FOUND" and caught.value.facts["column"] == "none"


@pytest.mark.parametrize("names", [("id", "x"), ("place", "y"), ("place", "x", "z")])
def test_a_field_of_a_primitive_is_no_column(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequest):
        ColumnNames(ONE).reference(names, ".".join(names))


def test_of_two_schemas_a_qualifier_decides_and_a_name_of_both_is_ambiguous() -> None:
    names = ColumnNames({"target": ONE, "source": OTHER})
    assert names.reference(("SOURCE", "id"), "SOURCE.id").qualifier == "source"
    assert names.reference(("new",), "new").qualifier == "source"
    with pytest.raises(InvalidRequest, match="more than one of target, source") as caught:
        names.reference(("id",), "id")
    assert caught.value.code == "AMBIGUOUS_REFERENCE"


def test_a_column_that_is_called_as_a_qualifier_is_found_where_the_qualifier_leads_nowhere() -> None:
    actual = ColumnNames({"target": ONE, "source": OTHER}).reference(("source", "x"), "source.x")
    assert (actual.qualifier, actual.path) == ("source", ("source", "X"))
