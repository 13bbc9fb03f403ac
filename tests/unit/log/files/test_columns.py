"""Tables of other shapes than wanted become those that are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe.log.files import columns
from tahoe.log.files.columns import cast_chunks, cast_members, concat, rows_at, with_fewer_chunks

WANTED = pa.struct([("a", pa.int64()), ("deep", pa.struct([("x", pa.string())])), ("new", pa.bool_())])


def test_members_that_a_struct_lacks_are_null_and_others_are_dropped_at_any_depth() -> None:
    values = pa.array([{"a": 1, "gone": 2, "deep": {"x": "u", "y": 1}}, None, {"a": None, "gone": 3, "deep": None}])
    actual = cast_members(values, WANTED)
    assert actual.type == WANTED
    assert actual.to_pylist() == [{"a": 1, "deep": {"x": "u"}, "new": None}, None, {"a": None, "deep": None, "new": None}]


def test_values_of_the_type_are_the_same_object() -> None:
    values = pa.chunked_array([[1, 2]])
    assert cast_chunks(values, pa.int64()) is values
    assert cast_chunks(pa.array([1]), pa.int32()).to_pylist() == [1]


def test_tables_are_joined_and_a_column_that_only_some_have_is_null_in_the_others() -> None:
    first = pa.table({"path": ["a"], "extra": [1]})
    other = pa.table({"path": ["b"], "more": [[1]]})
    assert concat([first, other], first.schema).to_pylist() == [
        {"path": "a", "extra": 1, "more": None},
        {"path": "b", "extra": None, "more": [1]},
    ]
    assert concat([], first.schema).schema == first.schema and concat([], first.schema).num_rows == 0


def test_small_chunks_are_joined_and_large_ones_stay_apart() -> None:
    few = pa.chunked_array([[1]] * 16)
    table = pa.table({"n": few})
    assert with_fewer_chunks(table) is table
    many = pa.table({"n": pa.chunked_array([[number] for number in range(100)] + [list(range(9_000))])})
    actual = with_fewer_chunks(many)
    assert actual.equals(many) and [len(chunk) for chunk in actual["n"].chunks] == [100, 9_000]


def test_rows_are_returned_in_any_order_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_ROWS_OF_SMALL_CHUNKS", 0)
    table = pa.concat_tables([pa.table({"x": [i, i + 1], "text": [f"t{i}", None]}) for i in range(0, 10, 2)])
    for rows in ([7, 0, 3, 9], [5], [], list(reversed(range(10)))):
        taken = rows_at(table, pa.array(rows, pa.uint64()))
        assert taken.equals(table.take(pa.array(rows, pa.uint64())))
        assert taken.schema == table.schema
