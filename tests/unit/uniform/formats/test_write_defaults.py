"""Column defaults in Iceberg's schema, format version 3."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.schema import Schema

from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructType
from tahoe.uniform.formats.iceberg_schema import iceberg_schema
from tests.unit.uniform.sample_documents import column

P = PrimitiveType


@pytest.mark.parametrize(
    ("data_type", "text", "expected"),
    [
        (P("string"), "'it''s'", "it's"),
        (P("string"), "''", ""),
        (P("boolean"), "false", False),
        (P("byte"), "1", 1),
        (P("short"), "-7", -7),
        (P("integer"), "40 + 2", 42),
        (P("long"), "0", 0),
        (P("float"), "0.5", 0.5),
        (P("double"), "1", 1.0),
        (DecimalType(10, 2), "14.2", "14.20"),
        (DecimalType(38, 0), "12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
        (P("date"), "date'2017-11-16'", "2017-11-16"),
        (P("timestamp_ntz"), "timestamp_ntz'2017-11-16 22:31:08'", "2017-11-16T22:31:08.000000"),
        (P("timestamp"), "timestamp'2017-11-16 22:31:08.5Z'", "2017-11-16T22:31:08.500000+00:00"),
        (P("binary"), "X'000102FF'", "000102ff"),
        (P("string"), "NULL", None),
        (P("timestamp"), "current_timestamp()", None),
        (P("date"), "current_date()", None),
        (P("timestamp"), "timestamp'2017-11-16 22:31:08'", None),
        (P("double"), "double('NaN')", None),
        (P("integer"), "1 / 0", None),
        (P("string"), "not an expression", None),
        (P("string"), "reflect('java.lang.System', 'exit')", None),
    ],
)
def test_a_literal_default_is_the_write_default_of_version_3(data_type: DataType, text: str, expected: Any) -> None:
    schema = StructType((column("c", data_type, 1, CURRENT_DEFAULT=text), column("plain", P("long"), 2)))
    made = iceberg_schema(schema, 3)
    first, second = made["fields"]
    assert (first.get("write-default"), "write-default" in first) == (expected, expected is not None)
    assert "write-default" not in second
    assert "initial-default" not in first
    assert Schema.model_validate(made).find_field("c").write_default is not None or expected is None
    assert not any("write-default" in field for field in iceberg_schema(schema, 2)["fields"])
