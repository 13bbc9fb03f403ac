"""Tahoe's expressions and Spark's, on the same rows: the same texts give the same types, the same values and the same errors.

Tahoe follows the newest Spark; `IN_OLDER_SPARK` lists every result that differs in an older release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.compute import compute
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.expression import Expression, sql_of_expression
from tahoe.schema.arrow import from_arrow_type, to_arrow_schema
from tahoe.schema.types import DataType
from tests.spark.test_filters_answer_as_spark import KINDS, rows, schema
from tests.unit.expr import sql_model

Answer = tuple[str, Any]

BATCH = 50
WHOLE = ("c_byte", "c_short", "c_integer", "c_long")
NUMBERS = (*WHOLE, "c_float", "c_double", "c_decimal")

ARITHMETIC = [
    *(f"try_cast({a} AS DOUBLE) {op} 2" for a in NUMBERS for op in ("+", "-", "*", "/", "%")),
    *(f"c_decimal {op} {b}" for op in ("+", "-", "*", "/", "%") for b in ("1.5", "3", "3L", "2.5D", "c_byte")),
    *(f"CAST(c_decimal AS DECIMAL(38, 10)) {op} 1.000000001" for op in ("+", "-", "*", "/", "%")),
    *(f"{a} / 3" for a in NUMBERS),
    *(f"{a} % 3" for a in NUMBERS),
    *(f"pmod({a}, 3)" for a in NUMBERS),
    *(f"{a} div 3" for a in (*WHOLE, "c_decimal")),
    *(f"{a} + 1" for a in WHOLE),
    *(
        f"{a} + {b}"
        for a in ("c_byte", "c_integer", "c_float")
        for b in ("1Y", "1S", "0", "1L", "1.5F", "1.5D", "0.5", "'2'", "NULL")
    ),
    *(f"-{a}" for a in NUMBERS),
    *(f"abs({a})" for a in NUMBERS),
    *(
        f"{name}({a})"
        for name in ("floor", "ceil", "sqrt", "signum", "exp", "log10", "ln")
        for a in ("c_byte", "c_double", "c_decimal")
    ),
    *(f"round({a}, {n})" for a in NUMBERS for n in (-1, 0, 1)),
    *(f"bround({a}, {n})" for a in ("c_double", "c_decimal", "c_integer") for n in (-1, 0, 1)),
    *("power(c_double, 2)", "power(c_byte, 0.5)", "pow(2, c_byte)"),
    *("c_integer & 7", "c_integer | 8", "c_integer ^ 3", "~c_integer", "c_byte & c_long"),
    *("1 / 0", "c_integer / 0", "c_double / 0", "c_decimal % 0", "NULL / 0", "c_long div 0", "c_long * 2", "0 - c_long"),
    *("1.0 / 3", "10 / 4", "2 + 3 * 4 - 1", "(2 + 3) * 4", "-(2)", "- -2", "7 % -3", "-7 % 3", "1e2 + 1", "100Y + 1"),
    *("2147483647 + 1", "2147483648 + 1", "9223372036854775808 + 1", "-9223372036854775808", "-128Y", "1.10BD * 2"),
]

CASTS = [
    *(
        f"TRY_CAST({a} AS {b})"
        for a in (*NUMBERS, "c_string", "c_boolean")
        for b in ("TINYINT", "INT", "BIGINT", "DOUBLE", "FLOAT")
    ),
    *(f"TRY_CAST({a} AS {b})" for a in (*NUMBERS, "c_string") for b in ("DECIMAL(5, 1)", "DECIMAL(38, 10)", "BOOLEAN")),
    *(f"CAST({a} AS STRING)" for a in (*NUMBERS, "c_string", "c_boolean", "c_date", "c_timestamp", "c_timestamp_ntz")),
    *(f"CAST({a} AS {b})" for a in ("c_date", "c_timestamp", "c_timestamp_ntz") for b in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")),
    *("CAST(c_timestamp AS BIGINT)", "CAST(c_integer AS TINYINT)", "CAST(c_double AS INT)", "CAST(c_string AS DATE)"),
    *(
        "CAST('2024-02-30' AS DATE)",
        "CAST('abc' AS INT)",
        "CAST(' 12 ' AS INT)",
        "CAST('1.5' AS DECIMAL(3, 1))",
        "CAST('t' AS BOOLEAN)",
    ),
    *(
        f"CAST({value} AS STRING)"
        for value in ("1e7D", "1e-3D", "123456.789D", "1e-4D", "1.5F", "0.1F", "1e10F", "1.0D", "12345678.9D")
    ),
    *("1::string", "CAST(NULL AS INT)", "CAST(1 AS BOOLEAN)", "CAST(1.5 AS INT)", "CAST(-1.5 AS INT)"),
]

LOGIC = [
    *(f"c_double {op} c_float" for op in ("=", "<", "<=", ">", ">=", "!=", "<=>")),
    *(f"c_integer {op} c_decimal" for op in ("=", "<", "<=>")),
    *(f"c_string {op} c_string" for op in ("=", "<=>", "<")),
    *(
        f"{a} {op} {b}"
        for op in ("=", "<")
        for a, b in (("c_date", "c_timestamp"), ("c_date", "c_timestamp_ntz"), ("c_byte", "c_long"))
    ),
    *("c_boolean AND NULL", "c_boolean OR NULL", "NOT c_boolean", "NULL AND false", "c_boolean = true", "c_boolean < true"),
    *(
        "c_integer BETWEEN -1 AND c_byte",
        "c_integer NOT BETWEEN 0 AND 1",
        "c_integer IN (c_byte, 1)",
        "c_double IN (CAST('NaN' AS DOUBLE), 1)",
    ),
    *(
        "c_integer IS NULL",
        "c_integer IS NOT NULL",
        "c_boolean IS TRUE",
        "c_boolean IS NOT FALSE",
        "isnull(c_date)",
        "isnan(c_double)",
    ),
    *("c_integer IS DISTINCT FROM c_byte", "s = s", "named_struct('x', c_byte) = named_struct('x', 1Y)", "c_binary = c_binary"),
    *(
        "CASE WHEN c_integer > 0 THEN 1 WHEN c_integer < 0 THEN -1.5 END",
        "CASE c_byte WHEN 1 THEN 'a' WHEN 0 THEN 'b' ELSE 'c' END",
    ),
    *(
        "if(c_boolean, c_byte, c_long)",
        "coalesce(c_byte, c_decimal, 0)",
        "nvl(c_string, 'none')",
        "nvl2(c_byte, 1, 2)",
        "nullif(c_byte, 1)",
    ),
    *(
        "nanvl(c_double, 0)",
        "greatest(c_double, c_float, 0)",
        "least(c_double, 1)",
        "greatest(c_string, 'b')",
        "ifnull(c_date, DATE '2020-01-01')",
    ),
    *("CASE WHEN c_byte <> 0 THEN 10 / c_byte ELSE 0 END", "c_byte <> 0 AND 10 / c_byte > 1", "coalesce(c_byte, 1 / 0)"),
    *(
        "c_integer = c_byte OR 1 / c_byte > 0",
        "if(c_boolean, 'x', NULL)",
        "'true' AND c_boolean",
    ),
]

TEXTS = [
    *(
        f"{name}(c_string)"
        for name in (
            "length",
            "lower",
            "upper",
            "trim",
            "ltrim",
            "rtrim",
            "reverse",
            "char_length",
            "octet_length",
            "md5",
            "sha1",
        )
    ),
    *(f"substring(c_string, {a}, {b})" for a in (-40, -2, 0, 1, 2, 40) for b in (-1, 0, 1, 3)),
    *(
        "substring(c_string, 2)",
        "substr(c_string, -1)",
        "left(c_string, 2)",
        "right(c_string, 2)",
        "right(c_string, 0)",
        "repeat('ab', c_byte % 3)",
    ),
    *(
        "c_string || '!'",
        "concat(c_string, c_integer, c_boolean)",
        "concat_ws('-', c_string, NULL, c_date)",
        "concat(c_binary, X'00')",
    ),
    *(
        "lpad(c_string, 5, '*')",
        "rpad(c_string, 5)",
        "lpad(c_string, 1, '')",
        "replace(c_string, 'a', 'bb')",
        "replace(c_string, 'a')",
    ),
    *(
        "startswith(c_string, 'a')",
        "endswith(c_string, 'b')",
        "contains(c_string, 'é')",
        "instr(c_string, 'b')",
        "position('a' IN c_string)",
    ),
    *(
        "c_string LIKE '%b'",
        "c_string LIKE 'a_%'",
        "c_string NOT LIKE '%a%'",
        r"c_string LIKE '%\\\\%'",
        "c_string LIKE ''",
        "c_string LIKE '%\"%'",
    ),
    *(
        "c_string RLIKE '^a+$'",
        "c_string RLIKE 'b$'",
        "c_string RLIKE '[^a]'",
        r"c_string RLIKE '\\d|\\W'",
        "c_string RLIKE 'z.q'",
        "c_string RLIKE '.'",
    ),
    *(
        "upper('ß')",
        "lower('ΑΣ')",
        "length('😀')",
        "trim('\t a ')",
        "'a''b'",
        "r'a\\b'",
        "length(c_binary)",
        "length(123)",
    ),
]

TIMES = [
    *(
        f"{name}(c_date)"
        for name in ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear", "last_day")
    ),
    *(f"{name}({a})" for name in ("year", "hour", "minute", "second", "day") for a in ("c_timestamp", "c_timestamp_ntz")),
    *(
        f"date_trunc('{unit}', c_timestamp)"
        for unit in ("YEAR", "quarter", "MON", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
    ),
    *(f"trunc(c_date, '{unit}')" for unit in ("YEAR", "quarter", "MM", "week")),
    *(
        "date_add(DATE '2024-01-31', c_byte)",
        "date_sub(DATE '2024-03-01', 1)",
        "add_months(DATE '2024-01-31', c_byte % 5)",
        "DATE '2024-01-31' + 1",
    ),
    *(
        "datediff(c_date, DATE '2000-01-01')",
        "make_date(2024, 2, 29)",
        "make_date(2023, 2, 29)",
        "to_date('2024-05-06')",
        "to_timestamp('2024-05-06 07:08:09')",
    ),
    *(
        "date_format(c_timestamp, 'yyyy-MM')",
        "date_format(c_date, 'yyyy/MM/dd HH:mm:ss')",
        "extract(YEAR FROM c_date)",
        "extract(WEEK FROM c_date)",
    ),
    *(
        f"DATE '2024-01-31' {sign} INTERVAL {interval}"
        for sign in "+-"
        for interval in (
            "1 MONTH",
            "'2' YEARS",
            "1 YEAR 13 MONTHS",
            "3 DAYS",
            "1 week 2 days",
            "'1 week 2 days'",
            "25 HOURS",
            "0 DAY",
        )
    ),
    *(
        f"{a} + INTERVAL {interval}"
        for a in ("TIMESTAMP '2024-01-31 12:00:00'", "TIMESTAMP_NTZ '2024-01-31 12:00:00'")
        for interval in ("1 MONTH", "-1 DAY", "1 HOUR -30 MINUTES", "1500 MILLISECONDS", "'2 hours 5 seconds'", "7 MICROSECONDS")
    ),
    *(
        "c_date > DATE '2024-01-31' - INTERVAL 1 DAY",
        "c_timestamp > TIMESTAMP '2024-01-31 12:00:00' - INTERVAL 1 DAY + INTERVAL 1 HOUR",
    ),
    *("TIMESTAMP '2024-01-01 12:00:00' > c_date", "TIMESTAMP_NTZ '2024-01-01 12:00:00'", "DATE '2024-01-01' = '2024-01-01'"),
]

NESTED = [
    *(
        "s.inner + 1",
        "s.inner IS NULL",
        "array(c_byte, c_integer)",
        "(array(1, 2))[0]",
        "(array(1, 2))[2]",
        "element_at(array(1, 2), -1)",
    ),
    *(
        "size(array(1, NULL))",
        "array_contains(array(1, NULL), c_integer)",
        "named_struct('a', c_byte, 'b', c_string)",
        "named_struct('a', 1).a",
    ),
    *("element_at(array(1), 0)", "(array(array(1)))[0][0]", "cardinality(array(c_byte))", "(array('a', c_string))[1]"),
]


_FIRST, _LAST = -(2**63), 2**63 - 1


def saturated(rounded: Callable[[float], int]) -> Callable[[pa.Table], Answer]:
    """Rounding to a long that ends at its bounds where ANSI mode should say that it overflows."""

    def rounded_value(value: float | None) -> int | None:
        if value is None or math.isnan(value):
            return None if value is None else 0
        return (_FIRST if value < 0 else _LAST) if math.isinf(value) else max(_FIRST, min(_LAST, rounded(value)))

    return lambda data: ("long", [rounded_value(value) for value in data["c_double"].to_pylist()])


_BEFORE_4_3: dict[str, Callable[[pa.Table], Answer]] = {
    "floor(c_double)": saturated(math.floor),
    "ceil(c_double)": saturated(math.ceil),
}
_BEFORE_4_1: dict[str, Callable[[pa.Table], Answer]] = {
    "c_decimal % c_byte": lambda _: ("error", "DIVIDE_BY_ZERO"),
    "c_decimal % 0": lambda _: ("error", "DIVIDE_BY_ZERO"),
    # The parser of 4.0 joins two adjacent literals. SQL text that Tahoe writes for Spark escapes quotes with a backslash.
    "'a''b'": lambda data: ("string", ["ab"] * data.num_rows),
}
IN_OLDER_SPARK = {"4.0": _BEFORE_4_1 | _BEFORE_4_3, "4.1": _BEFORE_4_3, "4.2": _BEFORE_4_3}


@pytest.fixture(scope="module")
def plain_spark() -> Iterator[SparkSession]:
    """A session in UTC; the one that is running, where there is one."""
    running = SparkSession.getActiveSession()
    session = running or SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    session.conf.set("spark.sql.session.timeZone", str(before))
    if running is None:
        session.stop()


def table() -> pa.Table:
    return pa.Table.from_pylist(rows(), to_arrow_schema(schema()))


def of_spark(session: SparkSession, data: pa.Table, texts: list[str]) -> list[Answer]:
    frame = session.createDataFrame(data)
    starts = range(0, len(texts), BATCH)
    return [answer for start in starts for answer in spark_answers(frame, texts[start : start + BATCH])]


def spark_answers(frame: Any, texts: list[str]) -> list[Answer]:
    """An error hides the values of all columns beside its own: such a query is split in two."""
    try:
        collected = frame.selectExpr(*(f"({text}) AS e{i}" for i, text in enumerate(texts))).toArrow()
    except PySparkException as error:
        if len(texts) == 1:
            return [("error", str(error.getCondition()).split(".")[0])]
        middle = len(texts) // 2
        return spark_answers(frame, texts[:middle]) + spark_answers(frame, texts[middle:])
    return [(plain(from_arrow_type(column.type)), listed(column)) for column in collected.columns]


def of_tahoe(text: str, data: pa.Table) -> Answer:
    try:
        expression = reread(parse_expression(text, schema()))
        column = compute(expression, data)
    except InvalidRequest as error:
        return ("error", error.code.split(".")[0])
    return (plain(expression.data_type), listed(column))


def reread(expression: Expression) -> Expression:
    """The expression by way of its own text."""
    return parse_expression(sql_of_expression(expression), schema())


def plain(data_type: DataType) -> str:
    return str(data_type)


def listed(column: Any) -> list[Any]:
    """Values in which NaN equals itself, and 0.0 does not equal -0.0."""
    return [
        (repr(value) if isinstance(value, float) and (math.isnan(value) or value == 0) else value) for value in column.to_pylist()
    ]


def assert_same(session: SparkSession, texts: list[str]) -> None:
    data = table()
    theirs = of_spark(session, data, texts)
    older = IN_OLDER_SPARK.get(pyspark.__version__[:3], {})
    ours = [older[text](data) if text in older else of_tahoe(text, data) for text in texts]
    differing = [actual for actual in zip(texts, ours, theirs, strict=True) if not same(*actual[1:])]
    assert not differing, "\n".join(f"{text}\n  ours   {item}\n  Spark  {other}" for text, item, other in differing)


def same(ours: Answer, theirs: Answer) -> bool:
    if ours[0] == "error" or theirs[0] == "error":
        return ours == theirs
    return ours[0] == theirs[0] and len(ours[1]) == len(theirs[1]) and all(map(near, ours[1], theirs[1]))


def near(one: Any, other: Any) -> bool:
    """Equal; roots and logarithms to the last digits."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-14)
    return bool(one == other)


@pytest.mark.parametrize("group", ["CASTS", "ARITHMETIC", "LOGIC", "TEXTS", "TIMES", "NESTED"])
def test_expressions_have_the_meaning_of_spark(plain_spark: SparkSession, group: str) -> None:
    assert len(KINDS) == len(sql_model.POOLS)
    assert_same(plain_spark, globals()[group])


CLOCK_CHANGES = [
    f"TIMESTAMP '{start}' {interval}"
    for start in (
        "2026-03-28 02:30:00",
        "2026-03-29 01:59:59",
        "2026-10-24 02:30:00",
        "2026-10-26 02:30:00",
        "2026-10-25T01:30:00Z",
    )
    for interval in (
        *("+ INTERVAL 1 DAY", "- INTERVAL 1 DAY", "+ INTERVAL 24 HOURS", "+ INTERVAL 25 HOURS", "- INTERVAL 25 HOURS"),
        *("+ INTERVAL 10 MINUTES", "+ INTERVAL 0 MONTH", "+ INTERVAL 1 MONTH", "- INTERVAL 7 MONTHS", "+ INTERVAL 5 MONTHS"),
    )
]


def test_intervals_end_at_the_same_instant_in_a_zone_with_summer_time(plain_spark: SparkSession) -> None:
    zone = "Europe/Berlin"
    plain_spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        row = plain_spark.range(1).selectExpr(*(f"unix_micros({text}) AS e{i}" for i, text in enumerate(CLOCK_CHANGES))).first()
    finally:
        plain_spark.conf.set("spark.sql.session.timeZone", "UTC")
    one_row = pa.table({"": [None]})
    ours = [compute(parse_expression(text, schema(), zone), one_row).cast(pa.int64())[0].as_py() for text in CLOCK_CHANGES]
    differing = [text for text, mine, theirs in zip(CLOCK_CHANGES, ours, row, strict=True) if mine != theirs]
    assert differing == []
