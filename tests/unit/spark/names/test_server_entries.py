"""Entries and views of a Spark Connect server's catalog, as its statements describe them."""

from __future__ import annotations

from typing import Any

import pytest

from tahoe.spark.names.server_catalog import _entry
from tahoe.spark.names.server_views import _ddl_type

DELTA = "Table: t\nOwner: me\nType: MANAGED\nProvider: delta\n{comment}Location: file:/w/a%20b\nSchema: root\n |-- id: integer"


def test_an_entry_has_format_and_location() -> None:
    entry = _entry("db", "t", DELTA.format(comment=""))
    assert (entry.parts, entry.provider, entry.location) == (("spark_catalog", "db", "t"), "delta", "file:/w/a b")
    assert (entry.is_delta, entry.is_managed, entry.owner, entry.is_view) == (True, True, "me", False)


def test_lines_of_a_comment_are_not_those_of_the_entry() -> None:
    entry = _entry("db", "t", DELTA.format(comment="Comment: x\nType: VIEW\nProvider: parquet\nLocation: /elsewhere\n"))
    assert (entry.provider, entry.location, entry.is_view) == ("delta", "file:/w/a b", False)


def test_a_view_has_no_format() -> None:
    entry = _entry("db", "v", "Table: v\nType: VIEW\nView Text: SELECT 'x\nType: MANAGED\nProvider: delta\nLocation: /elsewhere'")
    assert (entry.provider, entry.location, entry.is_view, entry.is_managed) == ("", "", True, False)


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ({"name": "int"}, "int"),
        ({"name": "timestamp_ltz"}, "timestamp_ltz"),
        ({"name": "decimal", "precision": 5, "scale": 2}, "decimal(5, 2)"),
        ({"name": "varchar", "length": 3}, "string"),
        ({"name": "string", "collation": "UNICODE_CI"}, "string collate UNICODE_CI"),
        ({"name": "interval", "start_unit": "day", "end_unit": "second"}, "interval day to second"),
        ({"name": "interval", "start_unit": "year", "end_unit": "year"}, "interval year"),
        ({"name": "map", "key_type": {"name": "int"}, "value_type": {"name": "date"}}, "map<int, date>"),
        (
            {"name": "array", "element_type": {"name": "struct", "fields": [{"name": "a`b", "type": {"name": "int"}}]}},
            "array<struct<`a``b`: int>>",
        ),
    ],
)
def test_the_type_of_a_view_column_is_ddl(described: dict[str, Any], expected: str) -> None:
    assert _ddl_type(described) == expected
