"""Assertions about tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import TahoeError
from tahoe.testing.assertions import assert_changes, assert_history, assert_rows, assert_schema


@pytest.fixture
def table(memory_url: str) -> Table:
    """Version 0 is empty, version 1 has two rows, version 2 an updated one, and the changes are recorded."""
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("name", pa.string()), pa.field("price", pa.float64())])
    table = Table.create(memory_url, schema, properties={"delta.enableChangeDataFeed": "true"})
    table.append(pa.table({"id": [1, 2], "name": ["a", "b"], "price": [1.5, None]}, schema))
    table.update({"price": "2.5"}, "id = 2")
    return table


ROWS = [{"id": 2, "name": "b", "price": 2.5}, {"id": 1, "name": "a", "price": 1.5}]


def failure_of(assertion: Callable[[], None]) -> list[str]:
    """The lines of the message after the first."""
    with pytest.raises(AssertionError) as raised:
        assertion()
    return str(raised.value).splitlines()[1:]


def test_rows_of_all_forms_are_compared(table: Table, tmp_path: Path) -> None:
    assert_rows(table, ROWS)
    assert_rows(table, pa.Table.from_pylist(ROWS))
    assert_rows(pa.Table.from_pylist(ROWS), table)
    assert_rows(table.snapshot(1), [{"id": 1, "name": "a", "price": 1.5}, {"id": 2, "name": "b", "price": None}])
    Table(tmp_path / "t").append(pa.Table.from_pylist(ROWS))
    assert_rows(tmp_path / "t", table)
    assert_rows(str(tmp_path / "t"), table, key="id", tolerance=0.1, columns=["id", "price"])
    with pytest.raises(TypeError, match="found int"):
        assert_rows(3, ROWS)  # type: ignore[arg-type]


def test_a_difference_names_the_table_the_version_and_the_rows(table: Table) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_rows(table, ROWS[:1])
    assert str(raised.value) == (
        f"unexpected rows of {table.url}, version 2:\n1 row not expected:\n  + {{'id': 1, 'name': 'a', 'price': 1.5}}"
    )
    changed = [{**ROWS[0], "price": 2.6}, ROWS[1]]
    assert failure_of(lambda: assert_rows(table, changed, key="id")) == [
        "1 value different:",
        "  id=2: price is 2.5, expected 2.6",
    ]
    assert_rows(table, changed, key="id", tolerance=0.1)
    assert_rows(table, changed, tolerance=0.1)


def test_expected_values_have_the_types_of_their_columns() -> None:
    schema = pa.schema(
        [
            ("decimal", pa.decimal128(5, 2)),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("map", pa.map_(pa.string(), pa.int64())),
            ("number", pa.float64()),
        ]
    )
    at = datetime(2026, 1, 2, 3, tzinfo=UTC)
    row = {"decimal": Decimal("1.50"), "at": at, "day": date(2026, 1, 2), "map": [("a", 1)], "number": 2.0}
    rows = pa.Table.from_pylist([row], schema)
    assert_rows(rows, [{**row, "decimal": Decimal("1.5"), "at": at.replace(tzinfo=None), "map": {"a": 1}, "number": 2}])
    with pytest.raises(AssertionError, match="an expected value of column day does not fit its type date32"):
        assert_rows(rows, [{**row, "day": "someday"}])


def test_columns_are_compared_too(table: Table) -> None:
    assert failure_of(lambda: assert_rows(table, [{"id": 1, "weight": 1}])) == [
        "- column weight: missing",
        "  expected row 0 has no value for column name: {'id': 1, 'weight': 1}",
    ]
    assert failure_of(lambda: assert_rows(table, ROWS, columns=["weight"])) == ["- column weight: missing"]
    assert failure_of(lambda: assert_rows(table, ROWS, key="number")) == ["- column number: missing"]
    assert_rows(table, [{"id": 1, "more": "ignored"}, {"id": 2}], columns=["id"])


def test_a_history_is_a_list_of_operations_or_of_columns(table: Table) -> None:
    assert_history(table, ["CREATE TABLE", "WRITE", "UPDATE"])
    assert_history(table, [{"operation": "WRITE", "operationParameters": {"mode": "Append"}}, "UPDATE"], start=1)
    assert failure_of(lambda: assert_history(table, ["CREATE TABLE", "MERGE"])) == [
        "  version 1: operation is 'WRITE', expected 'MERGE'",
        "+ version 2: UPDATE is not expected",
    ]
    assert failure_of(lambda: assert_history(table, ["UPDATE", {"operation": "WRITE", "version": 3}], start=2)) == [
        "- version 3: missing, expected {'operation': 'WRITE', 'version': 3}"
    ]
    wrong = {"operationParameters": {"mode": "Overwrite"}}
    (line,) = failure_of(lambda: assert_history(table, [wrong, "UPDATE"], start=1))
    assert line.startswith("  version 1: operationParameters is {") and line.endswith("expected {'mode': 'Overwrite'}")


def test_changes_are_compared_with_or_without_their_version(table: Table) -> None:
    before, after = {**ROWS[0], "price": None}, ROWS[0]
    changes = [{**before, "_change_type": "update_preimage"}, {**after, "_change_type": "update_postimage"}]
    assert_changes(table, 2, changes)
    assert_changes(table, 2, [{**change, "_commit_version": 2} for change in changes])
    assert_changes(table, 1, [{**ROWS[1], "_change_type": "insert"}, {**before, "_change_type": "insert"}], end=1)
    assert_changes(table, 2, [changes[0], {**changes[1], "price": 2.6}], key=["id", "_change_type"], tolerance=0.1)
    with pytest.raises(AssertionError, match=f"unexpected changes of {table.url} from version 2 to 2:\n1 row not expected:"):
        assert_changes(table, 2, changes[:1])
    assert failure_of(lambda: assert_changes(table, 2, [{**change, "_commit_version": 1} for change in changes]))
    with pytest.raises(TahoeError):
        assert_changes(table, 7, [])


def test_a_schema_is_a_list_of_names_and_types(table: Table) -> None:
    assert_schema(table, {"id": "long", "name": "string", "price": "double"})
    assert_schema(table, table.schema())
    assert_schema(table.to_arrow(), {"id": "bigint", "name": pa.string(), "price": "double"})
    assert failure_of(lambda: assert_schema(table, {"id": "int", "name": "string", "weight": "double"})) == [
        "- weight double: missing",
        "+ price double: not expected",
        "  id is long, expected integer",
    ]
    assert failure_of(lambda: assert_schema(table, {"name": "string", "id": "long", "price": "double"})) == [
        "  the order is id, name, price, expected name, id, price"
    ]
    nullable = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
    assert failure_of(lambda: assert_schema(table, nullable)) == ["  id may not be null, expected that it may be null"]
