"""Default values: the meaning of a column's text, and the refused texts; none is ever executed."""

from __future__ import annotations

import re
from contextlib import nullcontext
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest, TahoeError
from tahoe.expr.compute.compute import compute
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.protocol.column_values.default_values import default_of, is_keyword
from tahoe.protocol.constraints import check_default
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.schema.types import DecimalType, PrimitiveType, StructField, StructType, schema_from_json

MOMENT = Moment(1_600_000_000_123, "America/New_York")


def column(data_type, text):
    return StructField("c", data_type, True, {"CURRENT_DEFAULT": text})


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "'a''b'", "a'b"),
        ("string", "upper('x') || '${y}'", "X${y}"),
        ("string", "NULL", None),
        ("string", "5", "5"),
        ("integer", "1 + 2", 3),
        ("byte", "-3", -3),
        ("long", "1.4", 1),
        ("double", "1.5", 1.5),
        ("boolean", "true", True),
        ("binary", "X'00FF'", b"\x00\xff"),
        ("binary", "'é'", "é".encode()),
        ("integer", "' 5 '", 5),
        ("double", "'1e3'", 1000.0),
        ("date", "'2020-1-31'", date(2020, 1, 31)),
        ("timestamp", "'2020-01-31'", datetime(2020, 1, 31, 5, tzinfo=UTC)),
        ("timestamp_ntz", "'2020-01-31 10:00:00'", datetime(2020, 1, 31, 10)),
        ("date", "DATE'2020-01-31'", date(2020, 1, 31)),
        ("date", "current_date", date(2020, 9, 13)),
        ("date", "Current_Timestamp()", date(2020, 9, 13)),
        ("date", "current_date() - INTERVAL 1 DAY", date(2020, 9, 12)),
        ("timestamp", "now() - INTERVAL 1 HOUR", datetime(2020, 9, 13, 11, 26, 40, 123000, tzinfo=UTC)),
        ("timestamp_ntz", "localtimestamp()", datetime(2020, 9, 13, 8, 26, 40, 123000)),
    ],
)
def test_the_meaning_of_a_default(kind, text, value):
    actual = default_of(column(PrimitiveType(kind), text), "t", MOMENT)
    one_row = pa.table({"row": [0]})
    assert compute(actual.value, one_row)[0].as_py() == value
    if text not in ("5", "1.4"):  # which become the column's type where they are assigned
        again = parse_expression(actual.sql, StructType(()), MOMENT.time_zone)
        assert compute(again, one_row)[0].as_py() == value


@pytest.mark.parametrize(
    ("data_type", "text", "code"),
    [
        (PrimitiveType("long"), "'x'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (PrimitiveType("long"), "'1.5'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (PrimitiveType("date"), "'x'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (PrimitiveType("timestamp"), "'now'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (PrimitiveType("boolean"), "'true'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (DecimalType(3, 1), "'12345'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (PrimitiveType("date"), "1", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (PrimitiveType("integer"), "99999999999", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (DecimalType(3, 1), "12345", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (PrimitiveType("string"), "other_column", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (PrimitiveType("string"), "reflect('java.lang.System', 'exit')", "TAHOE_EXPRESSION_NOT_ALLOWED"),
        (PrimitiveType("string"), "(SELECT 1)", "TAHOE_EXPRESSION_NOT_ALLOWED"),
        (PrimitiveType("string"), "now", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (PrimitiveType("string"), "current_timestamp(), 1", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (PrimitiveType("string"), "", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
    ],
)
def test_texts_that_are_refused(data_type, text, code):
    with pytest.raises(TahoeError) as caught:
        check_default(column(data_type, text), "t", enabled=True, statement="ALTER TABLE")
    assert (caught.value.code, caught.value.facts["column"]) == (code, "c")


def test_only_null_is_a_default_of_nested_types():
    struct = schema_from_json('{"type":"struct","fields":[]}')
    assert default_of(column(struct, "null"), "t", MOMENT).sql == "NULL"


def test_a_table_without_the_feature_gets_no_default():
    with pytest.raises(InvalidRequest) as caught:
        check_default(column(PrimitiveType("long"), "1"), "t", enabled=False, statement="ALTER TABLE")
    assert caught.value.code == "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"


def test_the_word():
    assert is_keyword(" default ")
    assert not is_keyword("`default`")
    assert not is_keyword(None)


@pytest.mark.parametrize(
    ("text", "declared", "is_refused"),
    [
        ("'abcd'", "varchar(3)", True),
        ("'abcd'", "char(3)", True),
        ("'abc  '", "varchar(3)", False),
        ("'a'", "char(3)", False),
        ("NULL", "char(3)", False),
    ],
)
def test_a_default_that_is_longer_than_its_column_is_refused(text, declared, is_refused):
    limited = StructField("c", PrimitiveType("string"), True, {"CURRENT_DEFAULT": text, DECLARED_TYPE: declared})
    expected = (
        pytest.raises(InvalidRequest, match=f"EXCEED_LIMIT_LENGTH.*longer than {re.escape(declared)}")
        if is_refused
        else nullcontext()
    )
    with expected:
        check_default(limited, "t", enabled=True, statement="ALTER TABLE")
