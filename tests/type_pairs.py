"""Type changes of the specification: old type, new type, a value of the old, the same read as the new, and a value only the new has."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from tahoe.schema.types import DataType, DecimalType, PrimitiveType

__all__ = ["PAIRS"]

P = PrimitiveType
D = Decimal
PAIRS: list[tuple[DataType, DataType, object, object, object]] = [
    (P("byte"), P("short"), -128, -128, 1000),
    (P("short"), P("long"), 300, 300, 2**40),
    (P("integer"), P("long"), 2**31 - 1, 2**31 - 1, 2**31),
    (P("float"), P("double"), 0.1, 0.10000000149011612, 0.1),
    (P("byte"), P("double"), 7, 7.0, 7.5),
    (P("integer"), P("double"), 2**31 - 1, 2147483647.0, -0.5),
    (P("date"), P("timestamp_ntz"), date(2020, 2, 29), datetime(2020, 2, 29), datetime(2020, 2, 29, 0, 0, 0, 1)),
    (DecimalType(6, 2), DecimalType(8, 2), D("9999.99"), D("9999.99"), D("123456.78")),
    (DecimalType(6, 2), DecimalType(20, 4), D("-0.05"), D("-0.0500"), D("-0.0501")),
    (P("byte"), DecimalType(10, 0), -5, D("-5"), D("1234567890")),
    (P("integer"), DecimalType(12, 2), 2**31 - 1, D("2147483647.00"), D("2147483647.01")),
    (P("long"), DecimalType(20, 0), 2**62, D(2**62), D("9" * 20)),
    (P("long"), DecimalType(25, 3), -(2**63), D(-(2**63)).quantize(D("0.001")), D("0.001")),
]
