"""Arrow data that is written to data files is read back: any types, nesting, partitioning, mapping mode and deleted rows."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from tahoe.base.clock import SeededClock
from tahoe.ops.write.writer import WriterOptions, write_arrow
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.dv import decode, inline_descriptor
from tahoe.protocol.statistics.collect import FileStatistics
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.mapping import assign_ids
from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructField, StructType
from tahoe.snapshot.arrow_reader import FileReader, FileReadOptions, ReadTask
from tahoe.store.location import decode_path
from tahoe.store.object_store import open_store
from tests.tables.golden import assert_same_rows

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "byte": st.integers(-(2**7), 2**7 - 1),
    "short": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "boolean": st.booleans(),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    "binary": st.binary(max_size=6),
    "date": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    "timestamp": st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(lambda moment: moment.replace(tzinfo=UTC)),
    "timestamp_ntz": st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)),
    "decimal": st.integers(-(10**9), 10**9).map(lambda unscaled: Decimal(unscaled).scaleb(-3)),
}
PRIMITIVES = [DecimalType(12, 3) if name == "decimal" else PrimitiveType(name) for name in VALUES]
NAMES = st.text("abcXYZä_.-", min_size=1, max_size=6)
# Empty texts would be read back as null, and Iceberg-style float keys are not tested here.
PARTITION_TYPES = [t for t in PRIMITIVES if t not in (PrimitiveType("string"), PrimitiveType("binary"))]


def types(depth: int) -> st.SearchStrategy[DataType]:
    single = st.sampled_from(PRIMITIVES)
    if depth == 0:
        return single
    inner = types(depth - 1)
    keys = st.sampled_from([PrimitiveType("string"), PrimitiveType("long"), PrimitiveType("date")])
    return single | st.builds(ArrayType, inner) | st.builds(MapType, keys, inner) | structs(inner, 1)


def structs(inner: st.SearchStrategy[DataType], least: int) -> st.SearchStrategy[StructType]:
    fields = st.lists(st.tuples(NAMES, inner), min_size=least, max_size=4, unique_by=lambda pair: pair[0].lower())
    return fields.map(lambda pairs: StructType(tuple(StructField(name, kind) for name, kind in pairs)))


def values(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case StructType(fields):
            actual = st.fixed_dictionaries({column.name: values(column.data_type) for column in fields})
        case ArrayType(element):
            actual = st.lists(values(element), max_size=3)
        case MapType(key, value):
            actual = st.dictionaries(values(key).filter(lambda k: k is not None), values(value), max_size=3).map(
                lambda d: list(d.items())
            )
        case DecimalType():
            actual = VALUES["decimal"]
        case PrimitiveType(name):
            actual = VALUES[name]
    return st.none() | actual


@st.composite
def tables(draw: st.DrawFn) -> tuple[StructType, list[str], pa.Table]:
    schema = draw(structs(types(2), 1))
    partition = draw(st.lists(st.sampled_from(PARTITION_TYPES), max_size=2))
    columns = tuple(StructField(f"part {i}", kind) for i, kind in enumerate(partition))
    schema = StructType((*schema.fields, *columns))
    rows = draw(st.lists(values(schema).filter(lambda row: row is not None), max_size=8))
    return schema, [column.name for column in columns], pa.Table.from_pylist(rows, to_arrow_schema(schema))


@given(tables(), st.sampled_from(["none", "name", "id"]), st.none() | st.integers(1, 3), st.booleans(), st.data())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
def test_written_rows_are_read_back(table, mode, max_rows, compatible, data):
    schema, partition_columns, rows = table
    assigned, highest = assign_ids(schema, 0, SeededClock(), mode, nested_ids=compatible)
    properties = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": str(highest)}
    features = frozenset({"columnMapping", "timestampNtz"})
    metadata = Metadata("id", assigned.to_json(), tuple(partition_columns), properties)
    config = TableConfig(Protocol(3, 7, features, features), metadata, "memory://t")
    store = open_store(f"memory://{uuid.uuid4()}")

    adds = write_arrow(config, store, rows, SeededClock(), WriterOptions(max_rows))
    assert sum(FileStatistics.from_json(add.stats).num_records for add in adds) == rows.num_rows
    batches = []
    for add in adds:
        task = ReadTask(decode_path(add.path, store.url), add.size, add.partition_values)
        reader = FileReader(task, config.schema, mode, config.partition_columns)
        whole = pa.Table.from_batches(reader.live_rows(store.open_input, lambda _: None), to_arrow_schema(schema))
        batches.append(whole)
        dead = data.draw(st.sets(st.integers(0, whole.num_rows - 1)))
        vector = inline_descriptor(BitMap64(dead))
        task = ReadTask(task.name, task.size, task.partition_values, vector)
        reader = FileReader(task, config.schema, mode, config.partition_columns)
        alive = reader.live_rows(
            store.open_input, lambda d: decode(d, store.get, store.url), options=FileReadOptions(batch_rows=2)
        )
        remaining = whole.take(pa.array([i for i in range(whole.num_rows) if i not in dead], pa.int64()))
        assert_same_rows(pa.Table.from_batches(alive, to_arrow_schema(schema)), remaining)
    actual = pa.concat_tables([*batches, to_arrow_schema(schema).empty_table()])
    assert_same_rows(actual, rows)
