"""Python's values as SQL text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.python_values import sql_texts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("price * 2", "price * 2"),
        (5, "5"),
        (2**40, str(2**40)),
        (2**63, str(2**63)),
        (True, "true"),
        (None, "NULL"),
        (1.5, "1.5D"),
        (float("nan"), "CAST('NaN' AS DOUBLE)"),
        (Decimal("1.20"), "1.20BD"),
        (b"\x01", "X'01'"),
        (dt.date(2026, 1, 2), "DATE '2026-01-02'"),
        (dt.datetime(2026, 1, 2, 3), "TIMESTAMP_NTZ '2026-01-02 03:00:00'"),
        (dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=1))), "TIMESTAMP '2026-01-02 02:00:00Z'"),
        (np.int32(5), "5"),
        (np.bool_(True), "true"),
        (pa.scalar(7), "7"),
    ],
    ids=str,
)
def test_a_value_as_sql(value: Any, text: str) -> None:
    assert sql_texts({"c": value}) == {"c": text}


@pytest.mark.parametrize("value", [object(), [1], {"a": 1}, Decimal("NaN"), dt.time(1)], ids=str)
def test_values_that_are_no_constants_are_refused_by_their_column(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="for 'c' cannot be written as an SQL literal"):
        sql_texts({"c": value})
