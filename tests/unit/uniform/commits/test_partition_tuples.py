"""Partition values of clients: from Avro to Delta's texts; invalid ones are refused with the file and the column."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.schema.types import DataType, DecimalType, PrimitiveType
from tahoe.uniform.commits.client_manifests import ClientFile
from tahoe.uniform.commits.partition_tuples import partition_texts, python_values
from tests.unit.uniform.commits.test_registration import column, config

DOCUMENT = {
    "default-spec-id": 1,
    "partition-specs": [
        {"spec-id": 0, "fields": []},
        {"spec-id": 1, "fields": [{"source-id": 2, "field-id": 1000, "name": "p", "transform": "identity"}]},
    ],
}


def text_of(kind: DataType, value: Any) -> str | None:
    table = config(column("id", 1), column("p", 2, kind), partition_by=("p",))
    values = python_values(ClientFile("f", 0, "PARQUET", 1, 1, {1000: value}), table, DOCUMENT)
    return partition_texts(values, table)["p"]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (PrimitiveType("long"), -5, "-5"),
        (PrimitiveType("string"), "a b/c", "a b/c"),
        (PrimitiveType("boolean"), True, "true"),
        (PrimitiveType("double"), 0.5, "0.5"),
        (PrimitiveType("date"), (date(2026, 1, 2) - date(1970, 1, 1)).days, "2026-01-02"),
        (PrimitiveType("timestamp"), 1_000_001, "1970-01-01T00:00:01.000001Z"),
        (PrimitiveType("timestamp_ntz"), 1_500_000, "1970-01-01 00:00:01.5"),
        (DecimalType(9, 2), (-1234).to_bytes(4, "big", signed=True), "-12.34"),
        (PrimitiveType("string"), None, None),
    ],
)
def test_values_become_the_texts_of_the_log(kind: DataType, value: Any, text: str | None) -> None:
    assert text_of(kind, value) == text


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (PrimitiveType("string"), ""),
        (PrimitiveType("long"), "5"),
        (PrimitiveType("long"), True),
        (PrimitiveType("date"), 10**12),
        (DecimalType(9, 2), 5),
    ],
)
def test_an_invalid_value_is_refused(kind: DataType, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"The file f has (no valid|an empty text as the) partition value of column p"):
        text_of(kind, value)


def test_a_file_of_another_spec_is_refused() -> None:
    table = config(column("id", 1), column("p", 2), partition_by=("p",))
    with pytest.raises(InvalidRequest, match=r"has the partition fields \[\], and the table's spec has \[1000\]"):
        python_values(ClientFile("f", 0, "PARQUET", 1, 1), table, DOCUMENT)
