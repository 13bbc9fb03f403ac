"""Every kind of generated partition column from which delta-spark derives partition filters, with filters, and how many files are read.

`OptimizablePartitionExpression` of the reference is the list; a few that only Tahoe derives from stand behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from tahoe import Table
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import PrimitiveType, StructField, StructType

__all__ = ["CASES", "Generated", "generated_table"]

_TIMES = [datetime(2020, 12, 11, 5, tzinfo=UTC) + timedelta(days=3 * number) for number in range(20)]
_HOURS = [datetime(2020, 12, 30, 12, tzinfo=UTC) + timedelta(hours=6 * number) for number in range(20)]
_MONTHS = [datetime(2018 + number // 12, number % 12 + 1, 15, 8, tzinfo=UTC) for number in range(40)]
_DAYS = [time.date() for time in _TIMES]
_DATES = [time.date() for time in _MONTHS]
_TEXTS = [f"{letter}{number}foo" for letter in "abcde" for number in range(2)]
_DATE_TEXTS = [str(item) for item in _DATES]


@dataclass(frozen=True, slots=True)
class Generated:
    """A table: its base column `b`, and the expressions of its generated columns.

    Args:
        columns: partition columns to their expressions.
        kind: the base's type.
        values: one row each, beside one whose base is NULL.
        files: filters, with `{b}` for the base, to how many files are read for them; each has rows.
    """

    columns: Mapping[str, str]
    kind: str
    values: list[Any]
    files: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For a test's name."""
        return f"{self.kind}: {', '.join(self.columns.values())}"


def _at(text: str, equal: int, least: int, greatest: int) -> dict[str, int]:
    """Every comparison with one constant → the number of files with equal values, with values not less, and with values not greater."""
    actual = {"=": equal, "<=>": equal, ">": least, ">=": least, "<": greatest, "<=": greatest}
    return {**{f"{{b}} {op} {text}": files for op, files in actual.items()}, "{b} IS NULL": 1}


_PARTS = {"year": "YEAR({b})", "month": "MONTH({b})", "day": "DAY({b})", "hour": "HOUR({b})"}


def _parts(*names: str) -> dict[str, str]:
    return {name: _PARTS[name] for name in names}


CASES = [
    Generated({"p": "CAST({b} AS DATE)"}, "timestamp", _TIMES, _at("TIMESTAMP'2020-12-29 05:00:00'", 1, 14, 7)),
    Generated({"p": "CAST({b} AS DATE)"}, "date", _DAYS, _at("DATE'2020-12-29'", 1, 14, 7)),
    Generated(_parts("year"), "timestamp", _MONTHS, _at("TIMESTAMP'2020-05-15 08:00:00'", 12, 16, 36)),
    Generated(_parts("year"), "date", _DATES, _at("DATE'2020-05-15'", 12, 16, 36)),
    Generated({"year": "YEAR(CAST({b} AS DATE))"}, "date", _DATES, _at("DATE'2020-05-15'", 12, 16, 36)),
    Generated(_parts("year", "month"), "timestamp", _MONTHS, _at("TIMESTAMP'2020-05-15 08:00:00'", 1, 12, 29)),
    Generated(_parts("year", "month", "day"), "timestamp", _TIMES, _at("TIMESTAMP'2020-12-29 05:00:00'", 1, 14, 7)),
    Generated(_parts("year", "month", "day", "hour"), "timestamp", _HOURS, _at("TIMESTAMP'2021-01-01 06:00:00'", 5, 15, 10)),
    Generated({"p": "SUBSTRING({b}, 2, 3)"}, "string", _TEXTS, {"{b} = 'b1foo'": 6, "{b} IS NULL": 1}),
    Generated({"p": "SUBSTRING({b}, 0, 1)"}, "string", _TEXTS, _at("'b1foo'", 3, 9, 5)),
    Generated({"p": "SUBSTRING({b}, 1, 2)"}, "string", _TEXTS, _at("'b1foo'", 2, 8, 5)),
    Generated({"p": "DATE_TRUNC('MONTH', {b})"}, "timestamp", _MONTHS, _at("TIMESTAMP'2020-05-15 08:00:00'", 1, 12, 29)),
    Generated({"p": "DATE_TRUNC('DD', {b})"}, "date", _DAYS, _at("DATE'2020-12-29'", 1, 14, 7)),
    Generated({"p": "{b}"}, "string", _TEXTS, _at("'b1foo'", 2, 8, 5)),
    Generated({"p": "{b}"}, "timestamp", _TIMES, _at("TIMESTAMP'2020-12-29 05:00:00'", 1, 14, 7)),
    Generated({"p": "{b}"}, "long", list(range(10)), _at("5", 1, 5, 6)),
    Generated({"p": "{b}"}, "double", [float(number) for number in range(10)], _at("5.0D", 1, 5, 6)),
    Generated({"p": "DATE_FORMAT({b}, 'yyyy-MM')"}, "timestamp", _MONTHS, _at("TIMESTAMP'2020-05-15 08:00:00'", 2, 13, 30)),
    Generated({"p": "DATE_FORMAT({b}, 'yyyy-MM')"}, "date", _DATES, _at("DATE'2020-05-15'", 2, 13, 30)),
    Generated({"p": "DATE_FORMAT({b}, 'yyyy-MM-dd')"}, "timestamp", _TIMES, _at("TIMESTAMP'2020-12-29 05:00:00'", 2, 15, 8)),
    Generated({"p": "DATE_FORMAT({b}, 'yyyy-MM-dd-HH')"}, "timestamp", _HOURS, _at("TIMESTAMP'2021-01-01 06:00:00'", 6, 16, 11)),
    Generated({"p": "TRUNC({b}, 'year')"}, "timestamp", _MONTHS, _at("TIMESTAMP'2020-05-15 08:00:00'", 12, 16, 36)),
    Generated({"p": "TRUNC({b}, 'month')"}, "date", _DATES, _at("DATE'2020-05-15'", 1, 12, 29)),
    # The reference compares the texts as dates, and loses '2022-10-01' of `< '2022-9-01'`: equality alone says something.
    Generated({"p": "TRUNC({b}, 'quarter')"}, "string", _DATE_TEXTS, {"{b} = '2020-05-15'": 3, "{b} IS NULL": 1}),
    # From here on the reference derives nothing.
    Generated(_parts("year", "month"), "date", _DATES, _at("DATE'2020-05-15'", 1, 12, 29)),
    Generated(
        {"day": "CAST({b} AS DATE)", **_parts("hour")}, "timestamp", _HOURS, _at("TIMESTAMP'2021-01-01 06:00:00'", 5, 15, 10)
    ),
    Generated(_parts("month"), "timestamp", _MONTHS, {"{b} = TIMESTAMP'2020-05-15 08:00:00'": 3, "{b} IS NULL": 1}),
    Generated(
        {"p": "DATE_FORMAT({b}, 'yyyy')", "q": "DATE_FORMAT({b}, 'MM-dd')"},
        "timestamp",
        _TIMES,
        _at("TIMESTAMP'2020-12-29 05:00:00'", 1, 14, 7),
    ),
    Generated({"p": "SUBSTRING({b}, 1, 2)"}, "string", _TEXTS, {"{b} LIKE 'b1%'": 2, "{b} LIKE 'b%'": 3}),
]


def generated_table(path: Any, case: Generated, *, nested: bool = False) -> tuple[Table, str]:
    """A table of the case without statistics, one file for each row, and the name of its base.

    Args:
        nested: the base is a field of a struct.
    """
    base = StructField("b", PrimitiveType(case.kind))
    if nested:
        base = StructField("s", StructType((StructField("Inner", StructType((base,))),)))
    name = "s.inner.B" if nested else "b"
    columns = {column: text.format(b=name) for column, text in case.columns.items()}
    schema = StructType(
        (
            StructField("id", PrimitiveType("long")),
            base,
            *(
                StructField(
                    column, parse_expression(text, StructType((base,))).data_type, True, {"delta.generationExpression": text}
                )
                for column, text in columns.items()
            ),
        )
    )
    table = Table.create(path, schema, partition_by=list(columns), properties={"delta.dataSkippingNumIndexedCols": "0"})
    values = [*case.values, None]
    rows = [{"Inner": {"b": value}} for value in values] if nested else values
    data = {"id": pa.array(range(len(values)), pa.int64()), base.name: pa.array(rows, to_arrow_type(base.data_type))}
    table.append(pa.table(data), max_rows_per_file=1)
    return table, name
