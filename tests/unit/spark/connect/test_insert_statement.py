"""DEFAULT among the VALUES of an INSERT."""

from __future__ import annotations

import pytest

from tahoe.base.clock import Moment
from tahoe.ops.rows.defaults import Defaults
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT
from tahoe.protocol.config import TableConfig
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.spark.connect.insert_statement import mentions_default, with_default_values

SCHEMA = StructType(
    (
        StructField("k", PrimitiveType("integer"), metadata={CURRENT_DEFAULT: "7"}),
        StructField("v", PrimitiveType("string"), metadata={CURRENT_DEFAULT: "'x,)'"}),
        StructField("w", PrimitiveType("integer")),
    )
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("VALUES (1, DEFAULT, DEFAULT), (default, concat('(', ','), 3)", "VALUES (1, 'x,)', NULL), (7, concat('(', ','), 3)"),
        ("VALUES DEFAULT", "VALUES 7"),
        ("VALUES (f(1, DEFAULT), 'DEFAULT', `DEFAULT`)", "VALUES (f(1, DEFAULT), 'DEFAULT', `DEFAULT`)"),
        ("VALUES (1, DEFAULT + 1, 2)", "VALUES (1, DEFAULT + 1, 2)"),
        ("VALUES (1, 2, 3, DEFAULT)", "VALUES (1, 2, 3, DEFAULT)"),
    ],
)
def test_a_whole_value_is_replaced(query: str, expected: str) -> None:
    config = TableConfig(Protocol(1, 7, (), ("allowColumnDefaults",)), Metadata("id", schema_string=SCHEMA.to_json()), "t")
    defaults = Defaults(config, Moment(0, "UTC"))
    assert with_default_values(query, ("k", "v", "w"), SCHEMA, defaults) == expected


def test_only_values_have_the_keyword() -> None:
    assert mentions_default("VALUES (DEFAULT)")
    assert not mentions_default("VALUES ('DEFAULT')")
    assert not mentions_default("SELECT default FROM t")
