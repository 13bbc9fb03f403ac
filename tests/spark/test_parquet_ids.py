"""Field ids that are put into the footers of files already written."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import CorruptTable
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.mapping import assign_ids, transform_fields
from tahoe.schema.types import StructType
from tahoe.spark.executors.footers import with_nested_ids

DEEP = pa.schema(
    [
        ("plain", pa.int64()),
        ("list", pa.list_(pa.field("element", pa.list_(pa.field("element", pa.string()))))),
        ("map", pa.map_(pa.string(), pa.field("value", pa.list_(pa.field("element", pa.struct([("f", pa.int32())])))))),
        ("struct", pa.struct([("inner", pa.list_(pa.field("element", pa.map_(pa.int64(), pa.field("value", pa.float64())))))])),
    ]
)


def mapped() -> StructType:
    schema, _ = assign_ids(from_arrow_schema(DEEP), 0, SeededClock(), "name", nested_ids=True)
    return schema


def file_of(schema: pa.Schema, **options: Any) -> bytes:
    rows = schema.empty_table()
    values = {"plain": 1, "list": [["x"]], "map": [("k", [{"f": 2}])], "struct": {"inner": [[(3, 0.5)]]}}
    names = list(values)
    rows = pa.Table.from_arrays(
        [pa.array([values[name], None], rows.schema.field(i).type) for i, name in enumerate(names)], schema=schema
    )
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def physical_arrow(schema: StructType) -> pa.Schema:
    from tahoe.schema.arrow import to_arrow_schema

    return to_arrow_schema(transform_fields(schema, lambda column: replace(column, name=column.physical_name)))


@pytest.mark.parametrize(
    "options", [{}, {"data_page_version": "2.0"}, {"write_page_index": True}, {"compression": "none"}], ids=str
)
def test_a_footer_that_gets_no_ids_is_the_same_byte_for_byte(options):
    content = file_of(DEEP, **options)
    assert with_nested_ids(content, from_arrow_schema(DEEP)) == content


def test_elements_keys_and_values_get_their_ids_and_the_rows_stay_as_they_are():
    schema = mapped()
    content = file_of(physical_arrow(schema))
    patched = with_nested_ids(content, schema)
    before, after = pq.ParquetFile(io.BytesIO(content)), pq.ParquetFile(io.BytesIO(patched))
    assert after.read().equals(before.read())
    actual = {}

    def walk(field: pa.Field, path: str) -> None:
        number = (field.metadata or {}).get(b"PARQUET:field_id")
        if number is not None:
            actual[path] = int(number)
        if pa.types.is_list(field.type):
            walk(field.type.value_field, f"{path}.element")
        elif pa.types.is_map(field.type):
            walk(field.type.key_field, f"{path}.key")
            walk(field.type.item_field, f"{path}.value")
        elif pa.types.is_struct(field.type):
            for i in range(field.type.num_fields):
                walk(field.type.field(i), field.type.field(i).name)

    for field in after.schema_arrow:
        walk(field, field.name)
    expected: dict[str, int] = {}
    for column in (*schema, *schema.field("struct").data_type):
        expected.update(column.metadata.get("delta.columnMapping.nested.ids", {}))
    assert actual == expected


def test_files_other_than_parquet_are_refused():
    with pytest.raises(CorruptTable):
        with_nested_ids(b"PAR1 and something else", mapped())
