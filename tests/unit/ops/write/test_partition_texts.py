"""Every text is a partition value: it is read back, alone or filtered, after every command, from commits and checkpoints."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tahoe.api.table import Table
from tahoe.expr.tree.predicate import Column, Comparison, Literal
from tahoe.protocol.partition import HIVE_NULL, hive_folder
from tahoe.schema.types import PrimitiveType

STRANGE = [
    HIVE_NULL,
    "",
    "a/b",
    "a=b",
    "%2F",
    "%",
    "two\nlines",
    "\0",
    "😀",
    "x" * 300,
    "é" * 300,
    "..",
    ".",
    " ",
    "trail ",
    "trail.",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def _rows(table: Table, **how: object) -> set[tuple[int, str | None]]:
    return {(row["id"], row["p"]) for row in table.to_arrow(**how).to_pylist()}  # type: ignore[arg-type]


def _is(text: str) -> Comparison:
    return Comparison("=", Column(("p",)), Literal(text, PrimitiveType("string")))


def _live_through(url: str | Path, texts: list[str], properties: dict[str, str]) -> None:
    """Write, read, filter, change, delete and checkpoint rows whose partitions are these."""
    rows = pa.table({"id": pa.array([*range(len(texts)), -1], pa.int64()), "p": [*texts, None]})
    table = Table.create(url, rows.schema, partition_by=["p"], properties=properties)
    table.append(rows)
    expected = {(number, text or None) for number, text in enumerate(texts)} | {(-1, None)}
    assert _rows(Table(url)) == expected
    for text in filter(None, texts):
        assert _rows(Table(url), filter=_is(text)) == {row for row in expected if row[1] == text}
    table.update({"id": "id + 100"}, "id >= 0")
    expected = {(number + 100 if number >= 0 else number, text) for number, text in expected}
    table.checkpoint()
    assert _rows(Table(url)) == expected
    table.delete("p is null")
    assert _rows(Table(url)) == {row for row in expected if row[1] is not None}
    assert Table(url).check() == []


@settings(max_examples=8)
@given(texts=st.lists(TEXT, min_size=1, max_size=4, unique=True), changes=st.booleans())
@example(texts=STRANGE, changes=True)
def test_every_text_comes_back(texts: list[str], changes: bool) -> None:
    properties = {"delta.enableChangeDataFeed": "true"} if changes else {}
    _live_through(f"memory://{uuid.uuid4()}/table", texts, properties)


@pytest.mark.parametrize(
    "properties", [{}, {"delta.columnMapping.mode": "name"}, {"delta.enableChangeDataFeed": "true"}], ids=str
)
def test_strange_texts_come_back_from_a_folder(tmp_path: Path, properties: dict[str, str]) -> None:
    _live_through(tmp_path / "t", STRANGE, properties)


def test_replacing_where_and_dynamically_meets_the_partition_that_is_meant(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": [HIVE_NULL, None, "a%"]})
    table = Table.create(tmp_path / "t", rows.schema, partition_by=["p"])
    table.append(rows)
    table.overwrite(pa.table({"id": pa.array([4], pa.int64()), "p": [HIVE_NULL]}), replace_where=f"p = '{HIVE_NULL}'")
    assert _rows(table) == {(4, HIVE_NULL), (2, None), (3, "a%")}
    table.overwrite(pa.table({"id": pa.array([5], pa.int64()), "p": [""]}), dynamic_partitions=True)
    assert _rows(table) == {(4, HIVE_NULL), (5, None), (3, "a%")}
    table.overwrite(pa.table({"id": pa.array([6], pa.int64()), "p": [HIVE_NULL]}), dynamic_partitions=True)
    assert _rows(table) == {(6, HIVE_NULL), (5, None), (3, "a%")}


@given(one=st.one_of(TEXT, st.none(), st.just("x" * 300)), other=st.one_of(TEXT, st.just("x" * 299 + "y"), st.just(HIVE_NULL)))
def test_different_values_have_different_folders_that_every_file_system_holds(one: str | None, other: str) -> None:
    first, second = (hive_folder(["p"], {"p": value}) for value in (one, other))
    assert (first == second) == ((one or None) == (other or None))
    for folder in (first, second):
        assert len(folder.encode()) <= 255
        assert "/" not in folder
        assert "\0" not in folder
