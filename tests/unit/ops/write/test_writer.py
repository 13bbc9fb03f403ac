"""Arrow data into data files: casts, constraints, partitions, names, statistics, field ids."""

from __future__ import annotations

import json
import re
import threading
from datetime import UTC, date, datetime
from decimal import Decimal

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import InvalidRequest, SchemaMismatch, StorageFailure, TahoeError
from tahoe.ops.write.stored_layout import file_schema
from tahoe.ops.write.writer import WriterOptions, write_arrow
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.schema.arrow import from_arrow_schema, to_arrow_schema, to_arrow_type
from tahoe.schema.mapping import assign_ids, nested_ids_of
from tahoe.schema.types import ArrayType, DecimalType, MapType, PrimitiveType, StructField, StructType
from tahoe.snapshot.arrow_reader import FileReader, ReadTask
from tahoe.store.location import decode_path
from tahoe.store.object_store import open_store

P = PrimitiveType
MAPPING = Protocol(2, 7, writer_features=frozenset({"columnMapping", "icebergCompatV2", "invariants"}))


def struct(*fields, **named):
    return StructType((*fields, *(StructField(name, data_type) for name, data_type in named.items())))


def required(name, data_type):
    return StructField(name, data_type, nullable=False)


def config_of(schema, partition_by=(), protocol=None, **properties):
    metadata = Metadata("id", schema.to_json(), tuple(partition_by), {k.replace("__", "."): v for k, v in properties.items()})
    return TableConfig(protocol or Protocol(1, 2), metadata, "memory://t")


@pytest.fixture
def store(memory_url):
    return open_store(memory_url)


def names(store):
    return sorted(entry.name for entry in store.walk())


def read_back(config, store, adds):
    batches = []
    for add in adds:
        task = ReadTask(decode_path(add.path, store.url), add.size, add.partition_values)
        reader = FileReader(task, config.schema, config.column_mapping_mode, config.partition_columns)
        batches += reader.live_rows(store.open_input, lambda descriptor: None)
    return pa.Table.from_batches(batches)


ALL_TYPES = struct(
    b=P("byte"),
    sh=P("short"),
    i=P("integer"),
    l=P("long"),
    f=P("float"),
    d=P("double"),
    dec=DecimalType(9, 2),
    big=DecimalType(38, 10),
    s=P("string"),
    bin=P("binary"),
    bo=P("boolean"),
    day=P("date"),
    t=P("timestamp"),
    n=P("timestamp_ntz"),
    a=ArrayType(ArrayType(P("long"))),
    m=MapType(P("string"), struct(x=P("date"))),
    st=struct(inner=struct(y=P("string"))),
)
ROW = {
    "b": -128,
    "sh": 2**15 - 1,
    "i": -1,
    "l": 2**63 - 1,
    "f": 1.5,
    "d": float("-inf"),
    "dec": Decimal("-1234567.89"),
    "big": Decimal("1234567890123456789012345678.0123456789"),
    "s": "zß水🍌",
    "bin": b"\0\xff",
    "bo": True,
    "day": date(1, 1, 1),
    "t": datetime(1600, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    "n": datetime(9999, 12, 31, 23, 59, 59, 999_999),
    "a": [[1, None], [], None],
    "m": [("k", {"x": date(2020, 2, 29)}), ("l", None)],
    "st": {"inner": {"y": None}},
}


def test_every_type_comes_back_as_it_was_written(store):
    config = config_of(ALL_TYPES)
    data = pa.Table.from_pylist([ROW, {}, ROW], to_arrow_schema(ALL_TYPES))
    adds = write_arrow(config, store, data, SeededClock())
    assert read_back(config, store, adds).to_pylist() == data.to_pylist()


def test_a_file_has_the_physical_types_of_the_specification(store):
    config = config_of(ALL_TYPES)
    [add] = write_arrow(config, store, pa.table({"b": [1]}), SeededClock())
    schema = pq.ParquetFile(store.open_input(add.path)).schema
    kinds = {
        schema.column(i).path: (schema.column(i).physical_type, str(schema.column(i).logical_type)) for i in range(len(schema))
    }
    assert kinds["b"] == ("INT32", "Int(bitWidth=8, isSigned=true)")
    assert kinds["dec"] == ("INT32", "Decimal(precision=9, scale=2)")
    assert kinds["big"][0] == "FIXED_LEN_BYTE_ARRAY"
    assert kinds["t"][0] == kinds["n"][0] == "INT64"
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in kinds["t"][1]
    assert "isAdjustedToUTC=false, timeUnit=microseconds" in kinds["n"][1]
    assert "a.list.element.list.element" in kinds
    assert "m.key_value.value.x" in kinds


def test_the_action_shows_path_size_and_statistics(store):
    config = config_of(struct(a=P("long"), s=P("string")))
    clock = SeededClock()
    [add] = write_arrow(config, store, pa.table({"a": [3, None, 1], "s": ["x", "y", None]}), clock)
    assert re.fullmatch(r"part-00000-[0-9a-f-]{36}-c000\.snappy\.parquet", add.path)
    assert names(store) == [add.path]
    assert add.size == store.head(add.path).size
    assert add.data_change
    assert add.partition_values == {}
    assert 1_700_000_000_000 < add.modification_time < 1_700_000_001_000
    statistics = json.loads(add.stats)
    assert statistics["numRecords"] == 3
    assert statistics["minValues"] == {"a": 1, "s": "x"}
    assert statistics["maxValues"] == {"a": 3, "s": "y"}
    assert statistics["nullCount"] == {"a": 1, "s": 1}


def test_columns_are_matched_without_case_and_missing_ones_are_null(store):
    config = config_of(struct(id=P("long"), name=P("string"), inner=struct(x=P("integer"), y=P("date"))))
    data = pa.table({"INNER": [{"X": 1}, None], "ID": pa.array([1, 2], pa.int8())})
    adds = write_arrow(config, store, data, SeededClock())
    assert read_back(config, store, adds).to_pylist() == [
        {"id": 1, "name": None, "inner": {"x": 1, "y": None}},
        {"id": 2, "name": None, "inner": None},
    ]


def nothing_written(store, config, data, error=SchemaMismatch, **more):
    with pytest.raises(error) as raised:
        write_arrow(config, store, data, SeededClock(), WriterOptions(**more))
    assert names(store) == []
    return raised.value


def test_an_extra_column_is_refused_before_anything_is_written(store):
    error = nothing_written(store, config_of(struct(a=P("long"))), pa.table({"a": [1], "b": [2]}))
    assert error.code == "DELTA_METADATA_MISMATCH"


def test_a_value_out_of_range_names_column_and_types(store):
    error = nothing_written(store, config_of(struct(s=struct(a=P("byte")))), pa.table({"s": [{"a": 1}, {"a": 300}]}))
    assert error.code == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
    for part in ("'s.a'", "int64", "int8", "300"):
        assert part in str(error)


NOT_NULL = [
    (struct(required("a", P("long"))), {"a": [1, None]}, "'a'"),
    (struct(s=struct(required("x", P("long")))), {"s": [{"x": 1}, None, {"x": None}]}, "'s.x'"),
    (struct(l=ArrayType(P("long"), False)), {"l": [[1], [None]]}, "'l.element'"),
    (
        struct(m=MapType(P("string"), P("long"), False)),
        {"m": pa.array([[("k", None)]], pa.map_(pa.string(), pa.int64()))},
        "'m.value'",
    ),
]


@pytest.mark.parametrize(("schema", "columns", "name"), NOT_NULL)
def test_nulls_where_none_may_be_are_refused_before_anything_is_written(store, schema, columns, name):
    config = config_of(struct(*schema.fields, part=P("long")), ["part"])
    data = pa.table(columns)
    data = data.append_column("part", pa.array(range(data.num_rows), pa.int64()))
    error = nothing_written(store, config, data, InvalidRequest)
    assert error.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    assert name in str(error)


def test_a_field_that_must_not_be_null_binds_the_structs_around_it(store):
    config = config_of(struct(s=struct(t=struct(required("x", P("long"))))))
    for rows in ([{"t": {"x": 1}}, None], [{"t": None}], [{"t": {"x": None}}]):
        error = nothing_written(
            store, config, pa.table({"s": pa.array(rows, to_arrow_type(config.schema.fields[0].data_type))}), InvalidRequest
        )
        assert error.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
        assert "s.t.x" in str(error)


def test_a_null_struct_in_a_list_has_no_fields_that_could_be_null(store):
    config = config_of(struct(a=ArrayType(struct(required("x", P("long"))))))
    adds = write_arrow(config, store, pa.table({"a": [[{"x": 1}, None], None]}), SeededClock())
    assert read_back(config, store, adds)["a"].to_pylist() == [[{"x": 1}, None], None]


def test_an_empty_partition_value_counts_as_null(store):
    config = config_of(struct(required("p", P("string")), v=P("long")), ["p"])
    error = nothing_written(store, config, pa.table({"p": ["a", ""], "v": [1, 2]}), InvalidRequest)
    assert error.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"


def test_text_that_is_no_utf8_is_refused(store):
    bad = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    nested = pa.StructArray.from_arrays([bad], ["x"])
    for schema, array in ((struct(s=P("string")), bad), (struct(s=struct(x=P("string"))), nested)):
        error = nothing_written(store, config_of(schema), pa.table({"s": array}), InvalidRequest)
        assert "'s'" in str(error)


def test_rows_are_split_by_partition_in_their_order(store):
    schema = struct(v=P("long"), p=P("string"), q=P("integer"))
    config = config_of(schema, ["p", "q"])
    data = pa.table(
        {"v": range(8), "p": ["b", "a", "b", None, "", "a", "b/=%", "b"], "q": pa.array([1, 1, 1, 2, 2, 1, None, 2], pa.int32())}
    )
    adds = write_arrow(config, store, data, SeededClock())
    actual = {tuple(add.partition_values.values()): read_back(config, store, [add])["v"].to_pylist() for add in adds}
    assert actual == {("b", "1"): [0, 2], ("a", "1"): [1, 5], (None, "2"): [3, 4], ("b/=%", None): [6], ("b", "2"): [7]}
    for add in adds:
        assert "p" not in pq.read_schema(store.open_input(decode_path(add.path, store.url))).names
        assert re.fullmatch(r"p=.*/q=.*/part-0000\d-[0-9a-f-]{36}\.c000\.snappy\.parquet", decode_path(add.path, store.url))
    by_values = {tuple(add.partition_values.values()): decode_path(add.path, store.url) for add in adds}
    assert by_values[("b", "1")].startswith("p=b/q=1/")
    assert by_values[(None, "2")].startswith("p=__HIVE_DEFAULT_PARTITION__/q=2/")
    assert by_values[("b/=%", None)].startswith("p=b%2F%3D%25/q=__HIVE_DEFAULT_PARTITION__/")
    assert sorted(by_values.values()) == names(store)


PARTITION_TYPES = [
    (P("long"), [1, -(2**63)], ["1", "-9223372036854775808"]),
    (P("date"), [date(2020, 1, 2), date(1, 1, 1)], ["2020-01-02", "0001-01-01"]),
    (P("timestamp"), [datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)], ["2020-01-02T03:04:05.000000Z"]),
    (P("timestamp_ntz"), [datetime(2020, 1, 2, 3, 4, 5, 6)], ["2020-01-02 03:04:05.000006"]),
    (DecimalType(5, 2), [Decimal("1.50")], ["1.50"]),
    (P("boolean"), [True, False], ["true", "false"]),
    (P("double"), [1.5, float("nan")], ["1.5", "NaN"]),
    (P("binary"), [b"\x01a"], ["\x01a"]),
]


@pytest.mark.parametrize(("data_type", "values", "texts"), PARTITION_TYPES)
def test_partition_values_of_any_type_come_back(store, data_type, values, texts):
    config = config_of(struct(p=data_type, v=P("long")), ["p"])
    data = pa.table({"p": pa.array(values * 2, to_arrow_type(data_type)), "v": range(len(values) * 2)})
    adds = write_arrow(config, store, data, SeededClock())
    assert sorted(add.partition_values["p"] for add in adds) == sorted(texts)
    assert sorted(map(repr, read_back(config, store, adds).to_pylist())) == sorted(map(repr, data.to_pylist()))


def test_many_partition_columns_with_many_values_do_not_run_into_each_other(store):
    schema = struct(**{f"p{i}": P("long") for i in range(8)}, v=P("long"))
    config = config_of(schema, [f"p{i}" for i in range(8)])
    data = pa.table({**{f"p{i}": [(row * (i + 3)) % 11 for row in range(60)] for i in range(8)}, "v": range(60)})
    adds = write_arrow(config, store, data, SeededClock())
    expected = {tuple(row[f"p{i}"] for i in range(8)) for row in data.to_pylist()}
    assert len(adds) == len(expected)
    back = read_back(config, store, adds).select(data.column_names)
    assert sorted(map(repr, back.to_pylist())) == sorted(map(repr, data.to_pylist()))


def test_files_hold_no_more_rows_than_asked(store):
    config = config_of(struct(p=P("long"), v=P("long")), ["p"])
    data = pa.table({"p": [0, 1] * 10, "v": range(20)})
    adds = write_arrow(config, store, data, SeededClock(), WriterOptions(max_rows_per_file=4))
    counts = sorted((add.partition_values["p"], json.loads(add.stats)["numRecords"]) for add in adds)
    assert counts == [("0", 2), ("0", 4), ("0", 4), ("1", 2), ("1", 4), ("1", 4)]
    assert len({add.path for add in adds}) == 6
    nothing_written(open_store(store.url + "2"), config, data, InvalidRequest, max_rows_per_file=0)


def test_batches_of_a_stream_are_gathered_into_files(store):
    config = config_of(struct(v=P("long")))
    batches = [pa.record_batch({"v": [i, i + 1]}) for i in range(0, 20, 2)]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    adds = write_arrow(config, store, reader, SeededClock(), WriterOptions(max_rows_per_file=7))
    assert [json.loads(add.stats)["numRecords"] for add in adds] == [7, 7, 6]
    assert read_back(config, store, adds)["v"].to_pylist() == list(range(20))


def test_a_stream_larger_than_memory_is_written_as_it_comes(store, monkeypatch):
    monkeypatch.setattr("tahoe.ops.write.writer.MOST_BYTES_IN_MEMORY", 4000)
    monkeypatch.setattr(store, "asks_cheaply", True)  # each small file is stored before the next
    config = config_of(struct(p=P("long"), v=P("long")), ["p"])
    written = []

    def batches():
        for number in range(10):
            written.append(len(names(store)))
            yield pa.record_batch({"p": [0] * 90 + [1] * 10, "v": [number] * 100})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"p": pa.int64(), "v": pa.int64()}), batches())
    adds = write_arrow(config, store, reader, SeededClock())
    assert written[-1] >= 3
    assert read_back(config, store, adds).num_rows == 1000
    assert {add.partition_values["p"] for add in adds} == {"0", "1"}


def test_a_stream_that_breaks_its_rules_late_leaves_no_file_behind(store):
    config = config_of(struct(required("v", P("long"))))
    batches = [pa.record_batch({"v": [1, 2]}), pa.record_batch({"v": pa.array([None], pa.int64())})]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    error = nothing_written(store, config, reader, InvalidRequest, max_rows_per_file=1)
    assert error.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"


def test_small_files_are_stored_at_the_same_time_in_an_object_store(store):
    meeting = threading.Barrier(4, timeout=60)

    class Slow:
        url = store.url
        asks_cheaply = False

        def put(self, name, data):
            meeting.wait()
            store.put(name, data)

        delete = staticmethod(store.delete)

    rows = pa.table({"p": range(4), "v": range(4)})
    adds = write_arrow(config_of(struct(p=P("long"), v=P("long")), ["p"]), Slow(), rows, SeededClock())
    assert [add.partition_values["p"] for add in adds] == ["0", "1", "2", "3"]
    assert sorted(names(store)) == sorted(add.path for add in adds)


@pytest.mark.parametrize("asks_cheaply", [True, False])
def test_a_store_that_fails_leaves_no_file_behind(store, asks_cheaply):
    class Failing:
        url = store.url
        left = 2

        def put(self, name, data):
            store.put(name, data)
            self.left -= 1
            if not self.left:
                raise StorageFailure("no answer")

        delete = staticmethod(store.delete)

    failing = Failing()
    failing.asks_cheaply = asks_cheaply
    with pytest.raises(StorageFailure):
        write_arrow(
            config_of(struct(v=P("long"))),
            failing,
            pa.table({"v": range(10)}),
            SeededClock(),
            WriterOptions(max_rows_per_file=2),
        )
    assert names(store) == []


def test_no_rows_make_no_file(store):
    assert write_arrow(config_of(struct(v=P("long"))), store, pa.table({"v": pa.array([], pa.int64())}), SeededClock()) == []


@pytest.mark.parametrize("kind", ["batch", "polars", "pandas"])
def test_other_holders_of_arrow_data_are_taken(store, kind):
    data = pa.table({"v": [1, 2], "s": ["a", None]})
    if kind == "batch":
        values = data.to_batches()[0]
    elif kind == "polars":
        values = polars.from_arrow(data)
    else:
        values = data.to_pandas()
    config = config_of(struct(v=P("long"), s=P("string")))
    adds = write_arrow(config, store, values, SeededClock())
    assert read_back(config, store, adds).to_pydict() == data.to_pydict()


def test_objects_other_than_arrow_data_are_refused_by_their_type(store):
    nothing_written(store, config_of(struct(v=P("long"))), [{"v": 1}], InvalidRequest)


CODECS = [("snappy", ".snappy"), ("ZSTD", ".zstd"), ("gzip", ".gz"), ("lz4_raw", ".lz4raw"), ("none", ""), ("uncompressed", "")]


@pytest.mark.parametrize(("codec", "suffix"), CODECS)
def test_the_tables_compression_is_respected(store, codec, suffix):
    config = config_of(struct(v=P("long")), delta__parquet__compression__codec=codec)
    adds = write_arrow(config, store, pa.table({"v": range(1000)}), SeededClock())
    assert adds[0].path.endswith(f"-c000{suffix}.parquet")
    actual = pq.ParquetFile(store.open_input(adds[0].path)).metadata.row_group(0).column(0).compression
    assert actual == {"none": "UNCOMPRESSED", "lz4_raw": "LZ4"}.get(codec, codec.upper())
    assert read_back(config, store, adds).num_rows == 1000


def test_an_unknown_compression_is_refused(store):
    nothing_written(store, config_of(struct(v=P("long"))), pa.table({"v": [1]}), InvalidRequest, compression="brotli7")


def test_the_argument_wins_over_the_tables_compression(store):
    config = config_of(struct(v=P("long")), delta__parquet__compression__codec="gzip")
    [add] = write_arrow(config, store, pa.table({"v": [1]}), SeededClock(), WriterOptions(compression="zstd"))
    assert add.path.endswith(".zstd.parquet")


def test_void_columns_are_not_in_the_file_and_come_back_as_null(store):
    config = config_of(struct(v=P("void"), a=P("long"), s=struct(x=P("long"), v=P("void"))))
    data = pa.table({"v": pa.nulls(1), "a": [1], "s": [{"x": 2, "v": None}]})
    [add] = write_arrow(config, store, data, SeededClock())
    file = pq.ParquetFile(store.open_input(add.path)).schema
    assert [file.column(i).path for i in range(len(file))] == ["a", "s.x"]
    assert read_back(config, store, [add]).to_pylist() == [{"v": None, "a": 1, "s": {"x": 2, "v": None}}]


def test_a_table_of_void_columns_only_is_not_written(store):
    error = nothing_written(store, config_of(struct(v=P("void"))), pa.table({"v": pa.nulls(1)}))
    assert error.code == "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS"


def mapped_config(schema, partition_by=(), **properties):
    assigned, highest = assign_ids(schema, 0, SeededClock(7), "name", nested_ids=True)
    properties |= {"delta__columnMapping__mode": "name", "delta__columnMapping__maxColumnId": str(highest)}
    return config_of(assigned, partition_by, MAPPING, **properties)


def ids_of(field):
    """Names and field ids of a Parquet file's Arrow schema, nested."""
    own = int(field.metadata[b"PARQUET:field_id"])
    if pa.types.is_struct(field.type):
        return own, {field.type.field(i).name: ids_of(field.type.field(i)) for i in range(field.type.num_fields)}
    if pa.types.is_map(field.type):
        return own, {"key": ids_of(field.type.key_field), "value": ids_of(field.type.item_field)}
    if pa.types.is_list(field.type):
        return own, {"element": ids_of(field.type.value_field)}
    return own


def test_with_column_mapping_files_have_physical_names_and_ids_at_every_depth(store):
    schema = struct(a=P("long"), s=struct(x=ArrayType(MapType(P("string"), P("long")))), l=ArrayType(struct(y=P("date"))))
    config = mapped_config(schema)
    data = pa.table(
        {
            "a": [1],
            "s": pa.array([{"x": [[("k", 1)]]}], pa.struct({"x": pa.list_(pa.map_(pa.string(), pa.int64()))})),
            "l": [[{"y": date(2020, 1, 1)}]],
        }
    )
    [add] = write_arrow(config, store, data, SeededClock())
    file = pq.ParquetFile(store.open_input(add.path)).schema_arrow
    a, s, lists = config.schema.fields
    x, y = s.data_type.fields[0], lists.data_type.element_type.fields[0]
    nested = nested_ids_of(x)
    assert file.names == [a.physical_name, s.physical_name, lists.physical_name]
    key, value = (nested[f"{x.physical_name}.element.{part}"] for part in ("key", "value"))
    element = nested[f"{x.physical_name}.element"]
    assert ids_of(file.field(0)) == a.field_id
    assert ids_of(file.field(1)) == (
        s.field_id,
        {x.physical_name: (x.field_id, {"element": (element, {"key": key, "value": value})})},
    )
    list_element = nested_ids_of(lists)[f"{lists.physical_name}.element"]
    assert ids_of(file.field(2)) == (lists.field_id, {"element": (list_element, {y.physical_name: y.field_id})})
    assert read_back(config, store, [add]).to_pylist() == data.to_pylist()
    assert set(json.loads(add.stats)["nullCount"]) == {column.physical_name for column in config.schema}


def test_with_column_mapping_folders_are_random_and_partition_values_under_physical_names(store):
    config = mapped_config(struct(p=P("string"), v=P("long")), ["p"])
    adds = write_arrow(config, store, pa.table({"p": ["a", "b"], "v": [1, 2]}), SeededClock())
    physical = config.schema.field("p").physical_name
    assert [add.partition_values for add in adds] == [{physical: "a"}, {physical: "b"}]
    for add in adds:
        assert re.fullmatch(r"[0-9A-Za-z]{2}/part-0000\d-[0-9a-f-]{36}\.c000\.snappy\.parquet", add.path)
    assert read_back(config, store, adds).to_pylist() == [{"p": "a", "v": 1}, {"p": "b", "v": 2}]


def test_iceberg_compatible_files_hold_the_partition_columns_after_the_data(store):
    config = mapped_config(struct(p=P("string"), v=P("long")), ["p"], delta__enableIcebergCompatV2="true")
    [add] = write_arrow(config, store, pa.table({"p": ["a"], "v": [1]}), SeededClock())
    file = pq.read_table(store.open_input(add.path))
    p, v = config.schema.fields
    assert file.to_pydict() == {v.physical_name: [1], p.physical_name: ["a"]}
    assert file_schema(config).names == file.column_names
    assert p.physical_name not in json.loads(add.stats)["nullCount"]


@pytest.mark.parametrize(("value", "columns"), [("true", ["v", "p"]), ("false", ["v"])])
def test_a_property_puts_the_partition_columns_into_the_files(store, value, columns):
    config = config_of(struct(p=P("string"), v=P("long")), ["p"], delta__writePartitionColumnsToParquet=value)
    [add] = write_arrow(config, store, pa.table({"p": ["a"], "v": [1]}), SeededClock())
    assert pq.read_table(store.open_input(add.path)).column_names == columns
    assert read_back(config, store, [add]).to_pylist() == [{"p": "a", "v": 1}]


def test_random_prefixes_have_the_length_of_the_property(store):
    config = config_of(struct(v=P("long")), delta__randomizeFilePrefixes="true", delta__randomPrefixLength="5")
    [add] = write_arrow(config, store, pa.table({"v": [1]}), SeededClock())
    assert re.fullmatch(r"[0-9A-Za-z]{5}/part-00000-.*-c000\.snappy\.parquet", add.path)


def test_the_data_page_version_of_the_property_is_written(store):
    config = config_of(struct(v=P("string")), delta__parquet__format__version="2.12.0")
    [add] = write_arrow(config, store, pa.table({"v": ["x"]}), SeededClock())
    assert read_back(config, store, [add]).to_pydict() == {"v": ["x"]}
    [older] = write_arrow(config_of(struct(v=P("string"))), store, pa.table({"v": ["x"]}), SeededClock(1))
    assert pq.read_table(store.open_input(older.path)) == pq.read_table(store.open_input(add.path))
    assert store.get(older.path) != store.get(add.path)


def test_names_do_not_depend_on_anything_but_the_clock(memory_url):
    config = config_of(struct(v=P("long")), delta__randomizeFilePrefixes="true")
    paths = {write_arrow(config, open_store(f"{memory_url}/{i}"), pa.table({"v": [1]}), SeededClock(3))[0].path for i in range(2)}
    assert len(paths) == 1


def test_the_statistics_columns_of_the_table_are_respected(store):
    config = config_of(struct(a=P("long"), b=P("long"), c=P("string")), delta__dataSkippingStatsColumns="b")
    [add] = write_arrow(config, store, pa.table({"a": [1], "b": [2], "c": ["x"]}), SeededClock())
    assert json.loads(add.stats)["minValues"] == {"b": 2}


def test_errors_carry_no_values_of_other_columns(store):
    data = pa.table({"secret": ["hidden"], "a": ["text"]})
    with pytest.raises(TahoeError) as raised:
        write_arrow(config_of(struct(secret=P("string"), a=P("long"))), store, data, SeededClock())
    assert "hidden" not in str(raised.value)


class TestThreads:
    """Large files go to storage on threads, while the rows that follow are made."""

    SCHEMA = struct(p=P("long"), v=P("long"))

    @pytest.fixture(autouse=True)
    def _every_file_is_large(self, monkeypatch):
        monkeypatch.setattr("tahoe.ops.write.writer._BYTES_WORTH_A_THREAD", 0)

    def stream(self, last=None):
        batches = [pa.record_batch({"p": [0] * 90 + [1] * 10, "v": [number] * 100}) for number in range(12)]
        return pa.RecordBatchReader.from_batches(batches[0].schema, iter([*batches, *([] if last is None else [last])]))

    def test_files_come_in_the_order_of_writing_and_hold_all_rows(self, store):
        config = config_of(self.SCHEMA, ["p"])
        adds = write_arrow(config, store, self.stream(), SeededClock(), WriterOptions(bytes_per_file=4000))
        assert [re.search(r"part-(\d+)", add.path).group(1) for add in adds] == [f"{i:05d}" for i in range(len(adds))]
        assert [add.partition_values["p"] for add in adds].count("0") >= 3
        assert [add.partition_values["p"] for add in adds].count("1") == 1
        actual = read_back(config, store, adds).sort_by([("p", "ascending"), ("v", "ascending")])
        assert actual["v"].to_pylist() == [v for v in range(12) for _ in range(90)] + [v for v in range(12) for _ in range(10)]

    def test_a_row_that_does_not_fit_takes_back_the_files_before_it(self, store):
        config = config_of(StructType((required("p", P("long")), StructField("v", P("long")))))
        bad = pa.record_batch({"p": pa.array([None], pa.int64()), "v": [1]})
        with pytest.raises(TahoeError) as raised:
            write_arrow(config, store, self.stream(bad), SeededClock(), WriterOptions(bytes_per_file=4000))
        assert raised.value.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
        assert names(store) == []

    @pytest.mark.parametrize("number", [0, 2, 3])
    def test_storage_that_fails_on_a_thread_is_reported_and_nothing_stays(self, store, monkeypatch, number):
        def put(name, data):
            if f"part-{number:05d}" in name:
                raise StorageFailure("no space is left")
            type(store).put(store, name, data)

        monkeypatch.setattr(store, "put", put)
        with pytest.raises(StorageFailure, match="no space is left"):
            write_arrow(config_of(self.SCHEMA), store, self.stream(), SeededClock(), WriterOptions(bytes_per_file=4000))
        assert names(store) == []


@pytest.mark.parametrize("wrong", [0, 150, 299])
def test_each_part_of_a_long_column_is_validated(store, monkeypatch, wrong):
    monkeypatch.setattr("tahoe.schema.text_validity._ROWS_VALIDATED_AT_ONCE", 100)
    texts = pa.array([b"\xff" if number == wrong else b"text" for number in range(300)])
    data = pa.table({"text": texts.view(pa.string())})
    with pytest.raises(InvalidRequest, match=r"column 'text' .* is not valid"):
        write_arrow(config_of(from_arrow_schema(data.schema)), store, data, SeededClock())
