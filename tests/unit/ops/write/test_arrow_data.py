"""Rows in every supported form."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.write.arrow_data import as_table, in_hand, tables_of
from tahoe.schema.types import PrimitiveType, StructField, StructType

TABLE = pa.table({"id": [1, 2], "v": ["a", "b"]})


def reader() -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=1))


@pytest.mark.parametrize(
    "data", [TABLE, TABLE.to_batches()[0], TABLE.to_pandas(), pl.DataFrame(TABLE)], ids=lambda data: type(data).__name__
)
def test_every_form_is_the_same_table(data: object) -> None:
    assert as_table(data).to_pylist() == TABLE.to_pylist()


def test_a_stream_is_handed_on_batch_by_batch() -> None:
    tables, schema = tables_of(reader())
    assert schema == TABLE.schema and [table.num_rows for table in tables] == [1, 1]
    assert as_table(reader()).equals(TABLE)
    assert as_table(pa.RecordBatchReader.from_batches(TABLE.schema, [])).num_rows == 0


def test_an_index_without_a_name_is_no_column_unless_the_table_has_it() -> None:
    frame = pd.DataFrame({"id": [1, 2]}, index=[7, 9])
    name = "__index_level_0__"
    for data in (frame, pa.Table.from_pandas(frame), pa.Table.from_pandas(frame).to_batches()[0]):
        assert as_table(data).column_names == ["id"]
    remaining = in_hand(pa.Table.from_pandas(frame), StructType((StructField(name, PrimitiveType("long")),)))
    assert remaining.column_names == ["id", name]
    assert as_table(frame.rename_axis("place")).column_names == ["id", "place"]


def test_pandas_metadata_without_an_index_is_ignored() -> None:
    for reported in (b"no json", b"[]", b'{"index_columns": [{"kind": "range"}]}'):
        data = TABLE.replace_schema_metadata({b"pandas": reported})
        assert in_hand(data) is data


def test_other_objects_are_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidRequest, match="found list") as caught:
        in_hand([{"id": 1}])
    assert caught.value.code == "TAHOE_NOT_ARROW_DATA" and "Collect" not in caught.value.message

    class Lazy:
        def collect(self) -> None: ...

    with pytest.raises(InvalidRequest, match="Collect a lazy frame first"):
        in_hand(Lazy())
