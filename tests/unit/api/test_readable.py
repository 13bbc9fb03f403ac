"""One language of conditions: every filter accepts the conditions of DELETE, with the same rows; files are skipped by their implications."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import Column, Comparison, Literal
from tahoe.schema.types import PrimitiveType
from tests.unit.cli.test_main import run_json

CONDITIONS = {
    # condition -> the rows for which it is true, and the number of files, of four, that may have such rows
    "a + b > 13": ({7, 8}, 4),
    "a > 6": ({7, 8}, 1),
    "a > 6 AND a * b > 60": ({8}, 1),
    "a = 1 OR b / a > 1": ({1}, 4),
    "upper(s) = 'S3'": ({3}, 4),
    "s LIKE 's_' AND NOT a < 7": ({7, 8}, 1),
    "p + 1 > 3": ({5, 6, 7, 8}, 4),
    "p > 2 AND a % 2 = 0": ({6, 8}, 2),
    "CASE WHEN a > 4 THEN a = 5 END": ({5}, 4),
    "a IN (1, b, 8)": ({1, 2, 3, 4, 5, 6, 7, 8}, 4),
    "1 = 1": ({1, 2, 3, 4, 5, 6, 7, 8}, 4),
    "1 > 1": (set(), 0),
    "s = 5": None,
}


@pytest.fixture
def table(tmp_path):
    made = Table.create(
        tmp_path / "t",
        pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.string()), ("p", pa.int32())]),
        partition_by=["p"],
    )
    for p in range(1, 5):
        numbers = [2 * p - 1, 2 * p]
        made.append(pa.table({"a": numbers, "b": numbers, "s": [f"s{n}" for n in numbers], "p": pa.array([p, p], pa.int32())}))
    return made


@pytest.mark.parametrize("text", CONDITIONS)
def test_every_reader_takes_the_conditions_of_delete(table, text):
    expected = CONDITIONS[text]
    if expected is None:
        for read in (lambda: table.to_arrow(text), lambda: table.to_batches(text).read_all(), lambda: table.delete(text)):
            with pytest.raises(InvalidRequest, match=r"a cannot|s1"):
                read()
        return
    rows, files = expected
    assert set(table.to_arrow(text)["a"].to_pylist()) == rows
    assert table.to_arrow(text, columns=["s"]).column_names == ["s"]
    assert set(table.to_arrow(text, columns=["s"])["s"].to_pylist()) == {f"s{n}" for n in rows}
    assert {n for batch in table.to_batches(text) for n in batch["a"].to_pylist()} == rows
    assert table.to_batches(text, limit=1).read_all().num_rows == min(len(rows), 1)
    assert set(table.to_pandas(text)["a"]) == rows
    assert set(table.to_polars(text).collect()["a"]) == rows
    assert table.files(text).num_rows == files
    table.delete(text)
    assert set(table.to_arrow()["a"].to_pylist()) == set(range(1, 9)) - rows


def test_a_predicate_is_a_filter_still(table):
    actual = table.to_arrow(Comparison(">", Column(("a",)), Literal(6, PrimitiveType("long"))))
    assert actual["a"].to_pylist() == [7, 8]


def test_a_lazy_frame_filters_beyond_the_filter_it_was_made_with(table):
    import polars as pl

    assert table.to_polars("a + b > 8").filter(pl.col("a") < 7).select("a").collect()["a"].to_list() == [5, 6]


def test_the_command_line_takes_it_too(table):
    actual = run_json("files", table.url, "--filter", "p + 1 > 3 AND a > 6")
    assert len(actual["files"] if isinstance(actual, dict) else actual) == 1


@pytest.mark.parametrize(
    ("where", "stay"),
    [("p + 1 > 4", {1, 2, 3, 4, 5, 6}), ("a * b > 30", {1, 2, 3, 4, 5}), ("a > 6 AND b % 2 = 1", {1, 2, 3, 4, 5, 6, 8})],
)
def test_replace_where_takes_it_too(table, where, stay):
    rows = pa.table({"a": [107], "b": [107], "s": ["new"], "p": pa.array([9], pa.int32())})
    table.overwrite(rows, replace_where=where)
    assert set(table.to_arrow()["a"].to_pylist()) == stay | {107}
    with pytest.raises(InvalidRequest, match="does not satisfy replaceWhere"):
        table.overwrite(pa.table({"a": [0], "b": [0], "s": ["new"], "p": pa.array([0], pa.int32())}), replace_where=where)


def test_purge_takes_it_too_on_partition_columns(table):
    table.set_properties({"delta.enableDeletionVectors": "true"})
    table.delete("a % 2 = 0")
    assert sum(vector is not None for vector in table.files()["deletionVector"].to_pylist()) == 4
    table.purge("p + 1 > 3")
    left = table.files()
    assert sum(vector is not None for vector in left["deletionVector"].to_pylist()) == 2
    with pytest.raises(InvalidRequest, match="references non-partition column 'a'"):
        table.purge("p + a > 3")


def test_a_row_that_cannot_be_computed_is_an_error_that_names_the_file(table):
    with pytest.raises(InvalidRequest, match="cannot be computed for row 0") as caught:
        table.to_arrow("1 / (a - 3) > 0")
    assert "part-" in str(caught.value) or caught.value.code == "DIVIDE_BY_ZERO"
