"""Partition values out of the names of folders."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.ops.copies.hive_paths import PartitionReader, folder_values
from tahoe.ops.copies.partition_schema import partition_schema
from tahoe.protocol.partition import hive_folder


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("f.parquet", []),
        ("a=1/b=2/f.parquet", [("a", "1"), ("b", "2")]),
        ("x/a=1/b=2/y/f.parquet", [("a", "1"), ("b", "2")]),
        ("a=1/x/b=2/f.parquet", [("b", "2")]),
        ("a=/b=__HIVE_DEFAULT_PARTITION__/f", [("a", None), ("b", None)]),
        ("a%3Db=x%2Fy%20z/f", [("a=b", "x/y z")]),
        ("a=b=c/f", [("a", "b=c")]),
    ],
)
def test_folders_give_columns_and_values(name, expected):
    assert folder_values(name) == expected


@pytest.mark.parametrize("value", ["plain", "a/b", "50%", "a=b", "ü ñ", "tab\there", None])
def test_written_paths_are_read_back(value):
    assert folder_values(f"{hive_folder(['p'], {'p': value})}/f.parquet") == [("p", value)]


def test_values_are_as_the_log_writes_them():
    columns = partition_schema({"d": "date", "n": "int", "m": "decimal(5,2)", "t": "timestamp", "b": "boolean"})
    reader = PartitionReader(columns, "file:///t", "Asia/Tokyo")
    name = "d=2026-3-1/n=007/m=1.5/t=2026-03-01 09:30:00/b=TRUE/f"
    values = {"d": "2026-03-01", "n": "7", "m": "1.50", "t": "2026-03-01T00:30:00.000000Z", "b": "true"}
    assert reader.values(name) == values
    assert reader.values(name.replace("t=2026-03-01 09:30:00", "t=2026-03-01T00%3A30%3A00Z")) == values


def test_a_value_of_another_type_is_refused_or_null():
    columns = partition_schema({"n": "int"})
    with pytest.raises(InvalidRequest) as caught:
        PartitionReader(columns, "file:///t").values("n=many/f")
    assert caught.value.code == "DELTA_FAILED_CAST_PARTITION_VALUE"
    assert PartitionReader(columns, "file:///t", bad_values_are_null=True).values("n=many/f") == {"n": None}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("f", "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        ("a=1/b=2/f", "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        ("b=2/f", "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"),
    ],
)
def test_other_columns_are_refused(name, code):
    with pytest.raises(InvalidRequest) as caught:
        PartitionReader(partition_schema({"a": "string"}), "file:///t").values(name)
    assert caught.value.code == code


def test_a_column_matches_whatever_its_case():
    assert PartitionReader(partition_schema({"Day": "string"}), "file:///t").values("day=x/f") == {"Day": "x"}


def test_an_unknown_type_is_refused():
    with pytest.raises(Unsupported, match="datetime"):
        partition_schema({"d": "datetime"})
