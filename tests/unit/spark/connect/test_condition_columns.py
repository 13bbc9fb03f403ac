"""The columns of a table that a condition of a Spark Connect client may refer to."""

from __future__ import annotations

import pytest

from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.spark.connect.conditions import columns_in

LONG = PrimitiveType("long")
SCHEMA = StructType(tuple(StructField(name, LONG) for name in ("id", "Price", "n")))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["id < 3"], ("id",)),
        (["t.ID = s.id AND price * 2 > 1"], ("id", "Price")),
        (["n.a.b = 'price'"], ("Price", "n")),
        (["1 = 1", "n is null"], ("n",)),
        ([], ()),
        (["hash(*) = 1"], None),
        (["struct(t.*) IS NULL"], None),
        (["greatest(id, *) > 1"], None),
    ],
)
def test_a_column_counts_if_its_name_is_a_word_of_the_text(conditions: list[str], expected: tuple[str, ...] | None) -> None:
    assert columns_in(SCHEMA, *conditions) == expected


@pytest.mark.parametrize("name", ["a b", "é", "1", "a.b", ""])
def test_all_columns_count_if_a_name_is_no_word(name: str) -> None:
    assert columns_in(StructType((*SCHEMA.fields, StructField(name, LONG))), "id < 3") is None
