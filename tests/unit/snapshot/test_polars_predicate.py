"""The part of a Polars filter by which Tahoe may skip files: never a row that the filter keeps."""

from __future__ import annotations

from datetime import date

import polars as pl
import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.snapshot.to_frames import implied_predicate


@pytest.mark.parametrize(
    "expression",
    [
        pl.col("i") > 3,
        pl.lit(3) >= pl.col("i"),
        pl.col("i") != 2,
        ~(pl.col("i") > 3),
        (pl.col("i") == 1) | (pl.col("s") == "b"),
        (pl.col("i") == 1) | pl.col("s").str.starts_with("b"),
        pl.col("d") < date(2020, 1, 3),
        pl.col("f") > 1.5,
        pl.col("f") == float("nan"),
        pl.col("f") <= 1,
        pl.col("s").is_null() & pl.col("i").is_not_null(),
        pl.col("i").is_in([1, 2]),
        pl.col("i") > 2.5,
        pl.col("i") + 1 > 3,
        pl.col("b"),
        pl.col("b") == True,  # noqa: E712 - Polars' way
        pl.col("i").eq_missing(None),
        pl.col("i") > 1 << 40,
        pl.col("s") > "a",
    ],
    ids=str,
)
def test_rows_left_out_for_polars_are_never_rows_that_it_would_keep(tmp_path, expression):
    rows = pa.table(
        {
            "i": pa.array([1, 2, 3, 4, None, 5], pa.int32()),
            "s": ["a", "b", None, "bb", "", "ä"],
            "d": [date(2020, 1, day) for day in range(1, 7)],
            "f": [1.0, 2.0, float("nan"), None, -0.0, float("inf")],
            "b": [True, False, None, True, False, None],
        }
    )
    made = Table.create(tmp_path / "t", rows.schema)
    made.append(rows, max_rows_per_file=1)
    expected = pl.DataFrame(rows).filter(expression)
    assert made.to_polars().filter(expression).collect().equals(expected)
    implied = made.snapshot().scan(implied_predicate(expression, made.schema())).to_arrow()
    assert set(expected["d"]) <= set(implied.column("d").to_pylist())
