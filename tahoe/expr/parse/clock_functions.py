"""The functions that return the time of the statement, such as ``current_date()``: constants, once the statement has started."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from tahoe.expr.tree.constant_cast import cast_value
from tahoe.expr.tree.predicate import Literal
from tahoe.schema.types import PrimitiveType

CURRENT_TIME = {
    "CURRENT_TIMESTAMP": "timestamp",
    "NOW": "timestamp",
    "CURRENT_DATE": "date",
    "CURDATE": "date",
    "LOCALTIMESTAMP": "timestamp_ntz",
}
"""The functions, in upper case, with the types of their results."""

WITHOUT_BRACKETS = frozenset({"CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP"})
"""Functions that need no brackets, if no column has their name."""


def current_time(function: str, now_ms: int, zone: tzinfo) -> Literal:
    """Return the result of one of the functions.

    Args:
        now_ms: the time of the statement, in milliseconds since the epoch.
        zone: of the session.
    """
    data_type = PrimitiveType(CURRENT_TIME[function])
    return Literal(cast_value(_EPOCH + timedelta(milliseconds=now_ms), data_type, zone), data_type)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
