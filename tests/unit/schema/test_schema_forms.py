"""Schemas and types in the forms in which callers write them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.schema.schema_forms import schema_of, type_of
from tahoe.schema.types import ArrayType, DecimalType, PrimitiveType, StructField, StructType

LONG = PrimitiveType("long")


class Shown:
    """Hands over a schema as other libraries do."""

    def __arrow_c_schema__(self) -> object:
        return pa.schema({"id": pa.int64()}).__arrow_c_schema__()


@pytest.mark.parametrize(
    "schema",
    [{"id": "long"}, {"id": "BIGINT"}, {"id": pa.int64()}, {"id": LONG}, pa.schema({"id": pa.int64()}), Shown()],
    ids=lambda schema: str(schema)[:20],
)
def test_a_schema_in_any_form(schema: Any) -> None:
    assert schema_of(schema) == StructType((StructField("id", LONG),))


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("int", PrimitiveType("integer")),
        (" Decimal( 10, 2 ) ", DecimalType(10, 2)),
        ("numeric(5,1)", DecimalType(5, 1)),
        (pa.list_(pa.int64()), ArrayType(LONG)),
        (LONG, LONG),
    ],
)
def test_a_type_in_any_form(text: Any, data_type: Any) -> None:
    assert type_of(text, "c") == data_type


def test_objects_that_are_no_types_are_refused_by_the_columns_name() -> None:
    with pytest.raises(Unsupported, match="Column 'c' cannot have the type 'sausage'"):
        schema_of({"c": "sausage"})
    with pytest.raises(InvalidRequest, match=r"The type of column 'c' must be a name such as 'long'.*found 5 \(int\)"):
        schema_of({"c": 5})  # type: ignore[dict-item]
    with pytest.raises(InvalidRequest, match="mapping of column names to types, found str"):
        schema_of("c long")
