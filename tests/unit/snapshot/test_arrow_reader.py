"""One data file into Arrow: mapping, types, partition values, deletion vectors, pruning, row ids; and its imports."""

from __future__ import annotations

import io
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from tahoe.base.exceptions import CorruptTable, NotFound, StorageFailure
from tahoe.expr.tree.predicate import And, Column, Comparison, In, IsNotNull, IsNull, Literal, Not, Or, StartsWith
from tahoe.protocol.dv import decode, inline_descriptor
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.mapping import ID_KEY, PHYSICAL_NAME_KEY
from tahoe.schema.types import ArrayType, DecimalType, MapType, PrimitiveType, StructField, StructType
from tahoe.snapshot.arrow_reader import ExtraColumns, FileReader, FileReadOptions, ReadTask

P = PrimitiveType


def struct(**named):
    return StructType(tuple(StructField(name, data_type) for name, data_type in named.items()))


def mapped(name, data_type, column_id, physical_name):
    return StructField(name, data_type, metadata={ID_KEY: column_id, PHYSICAL_NAME_KEY: physical_name})


class File:
    """A Parquet file in memory, as the store would open it."""

    def __init__(self, table: pa.Table, **options):
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, **options)
        self.content = sink.getvalue()

    def read(self, schema, *, mode="none", partition_columns=(), predicate=None, vector=None, **more):
        values = {
            name: more.pop(name) for name in ("partition_values", "base_row_id", "default_row_commit_version") if name in more
        }
        task = ReadTask("a.parquet", self.content.size, deletion_vector=vector, **values)
        extra = more.pop("extra", ExtraColumns())
        batches = FileReader(task, schema, mode, partition_columns, extra).live_rows(
            lambda name: pa.BufferReader(self.content),
            lambda descriptor: decode(descriptor, lambda name: b"", "file:///t"),
            predicate,
            FileReadOptions(**more),
        )
        return pa.Table.from_batches(list(batches), more_schema(schema, extra))


def more_schema(schema, extra):
    actual = to_arrow_schema(schema)
    for name in filter(None, (extra.row_index_column, extra.row_id_column, extra.row_commit_version_column)):
        actual = actual.append(pa.field(name, pa.int64(), name != extra.row_index_column))
    return actual


def literal(value, name="long"):
    return Literal(value, P(name))


def test_columns_have_the_requested_order_and_missing_ones_are_null():
    file = File(pa.table({"a": [1, 2], "b": ["x", "y"], "unused": [1.0, 2.0]}))
    actual = file.read(struct(B=P("string"), missing=P("date"), nothing=P("void"), a=P("long")))
    assert actual.to_pydict() == {"B": ["x", "y"], "missing": [None, None], "nothing": [None, None], "a": [1, 2]}


def test_an_exact_name_wins_over_one_in_another_case():
    assert File(pa.table({"A": [1], "a": [2]})).read(struct(a=P("long"))).to_pydict() == {"a": [2]}


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_added_and_dropped_fields_are_found_by_physical_name_or_id(mode):
    inner = pa.struct([pa.field("col-x", pa.int32(), metadata={"PARQUET:field_id": "3"}), pa.field("col-gone", pa.int32())])
    file_schema = pa.schema(
        [
            pa.field("col-s", inner, metadata={"PARQUET:field_id": "1"}),
            pa.field("col-l", pa.list_(pa.field("element", inner)), metadata={"PARQUET:field_id": "2"}),
            pa.field("swapped", pa.string(), metadata={"PARQUET:field_id": "9"}),
        ]
    )
    row = {"col-x": 5, "col-gone": 6}
    file = File(pa.Table.from_pylist([{"col-s": row, "col-l": [row, None], "swapped": "s"}, {}], file_schema))
    nested = StructType((mapped("new", P("date"), 4, "col-new"), mapped("renamed", P("long"), 3, "col-x")))
    schema = StructType(
        (mapped("list", ArrayType(nested), 2, "col-l"), mapped("struct", nested, 1, "col-s"), mapped("col-s", P("long"), 10, "c"))
    )
    actual = file.read(schema, mode=mode)
    assert actual.to_pylist() == [
        {"list": [{"new": None, "renamed": 5}, None], "struct": {"new": None, "renamed": 5}, "col-s": None},
        {"list": None, "struct": None, "col-s": None},
    ]


def test_by_id_a_physical_name_alone_finds_nothing():
    file = File(pa.table({"col-a": [1]}))
    assert file.read(StructType((mapped("a", P("long"), 1, "col-a"),)), mode="id").to_pydict() == {"a": [None]}


def test_column_names_with_dots_are_not_taken_for_nested_fields():
    file = File(pa.table({"a": [{"b": 1}], "a.b": [2]}))
    assert file.read(struct(**{"a.b": P("long")})).to_pydict() == {"a.b": [2]}
    greater = Comparison(">", Column(("a.b",)), literal(1))
    assert file.read(struct(**{"a.b": P("long")}), predicate=greater).num_rows == 1


def test_partition_values_come_from_the_log_and_not_from_the_file():
    schema = struct(v=P("long"), p=P("date"), q=DecimalType(5, 2), r=P("string"))
    values = {"p": "2020-01-02", "q": "1.50", "r": None}
    actual = File(pa.table({"v": [1, 2], "p": ["wrong", "wrong"]})).read(
        schema, partition_columns=["P", "q", "r"], partition_values=values
    )
    assert actual.to_pydict() == {"v": [1, 2], "p": [date(2020, 1, 2)] * 2, "q": [Decimal("1.50")] * 2, "r": [None, None]}


def test_partition_values_are_looked_up_by_physical_name():
    schema = StructType((mapped("p", P("long"), 1, "col-p"), mapped("v", P("long"), 2, "col-v")))
    actual = File(pa.table({"col-v": [1]})).read(schema, mode="name", partition_columns=["p"], partition_values={"col-p": "7"})
    assert actual.to_pydict() == {"p": [7], "v": [1]}


def test_partition_columns_alone_still_count_the_rows_of_the_file():
    file = File(pa.table({"v": range(10)}), row_group_size=4)
    actual = file.read(
        struct(p=P("long")), partition_columns=["p"], partition_values={"p": "3"}, vector=inline_descriptor(BitMap64([0, 5]))
    )
    assert actual.to_pydict() == {"p": [3] * 8}


def test_no_columns_at_all_still_count_the_rows():
    file = File(pa.table({"v": range(10)}), row_group_size=4)
    task = ReadTask("a.parquet", None, deletion_vector=inline_descriptor(BitMap64([0, 5])))
    batches = FileReader(task, struct(), "none", ()).live_rows(
        lambda name: pa.BufferReader(file.content), lambda _: BitMap64([0, 5])
    )
    assert sum(batch.num_rows for batch in batches) == 8


def test_int96_timestamps_are_microseconds_in_utc_over_the_whole_range():
    moments = [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(9999, 12, 31, 23, 59, 59, 999_999)]
    file = File(pa.table({"t": pa.array(moments[1:2], pa.timestamp("us"))}), use_deprecated_int96_timestamps=True)
    assert file.read(struct(t=P("timestamp"))).column("t").to_pylist() == [moments[1].replace(tzinfo=UTC)]
    assert file.read(struct(t=P("timestamp_ntz"))).column("t").to_pylist() == [moments[1]]
    wide = File(pa.table({"t": pa.array(moments, pa.timestamp("us", "UTC"))}))
    assert wide.read(struct(t=P("timestamp"))).column("t").to_pylist() == [moment.replace(tzinfo=UTC) for moment in moments]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_timestamps_of_any_unit_are_read(unit, zone):
    file = File(
        pa.table({"t": pa.array([datetime(2020, 1, 2, 3, 4, 5, 6000)], pa.timestamp(unit)).cast(pa.timestamp(unit, zone))})
    )
    assert file.read(struct(t=P("timestamp"))).column("t").to_pylist() == [datetime(2020, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)]
    assert file.read(struct(t=P("timestamp_ntz"))).column("t").to_pylist() == [datetime(2020, 1, 2, 3, 4, 5, 6000)]


@pytest.mark.parametrize("as_integer", [False, True])
@pytest.mark.parametrize("precision", [1, 9, 10, 18, 19, 38])
def test_decimals_are_read_in_any_physical_encoding_and_widened(precision, as_integer):
    values = [Decimal("0.1"), Decimal("-0.9"), None]
    file = File(pa.table({"d": pa.array(values, pa.decimal128(precision, 1))}), store_decimal_as_integer=as_integer)
    assert file.read(struct(d=DecimalType(precision, 1))).column("d").to_pylist() == values
    if precision < 38:
        assert file.read(struct(d=DecimalType(precision + 1, 2))).column("d").to_pylist() == values


def test_columns_whose_type_was_widened_since_are_read_at_every_depth():
    file = File(pa.table({"a": pa.array([1], pa.int8()), "m": pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float32()))}))
    actual = file.read(struct(a=P("long"), m=MapType(P("string"), P("double"))))
    assert actual.to_pylist() == [{"a": 1, "m": [("k", 1.5)]}]
    assert actual.schema == to_arrow_schema(struct(a=P("long"), m=MapType(P("string"), P("double"))))


def test_a_type_that_cannot_be_read_as_the_tables_names_file_column_and_types():
    file = File(pa.table({"s": [{"x": "text"}]}))
    with pytest.raises(CorruptTable) as raised:
        file.read(struct(s=struct(x=P("long"))))
    for part in ("'s.x'", "'a.parquet'", "string", "int64"):
        assert part in str(raised.value)


def test_a_file_that_is_no_parquet_is_corrupt_and_named():
    file = File(pa.table({"a": [1]}))
    file.content = pa.py_buffer(b"not a parquet file at all")
    with pytest.raises(CorruptTable, match=r"a\.parquet"):
        file.read(struct(a=P("long")))


def test_a_damaged_page_is_corrupt_and_a_failing_store_is_not():
    file = File(pa.table({"a": ["some text"] * 1000}), compression="zstd")
    broken = bytearray(file.content.to_pybytes())
    broken[20:40] = b"\0" * 20
    file.content = pa.py_buffer(bytes(broken))
    with pytest.raises(CorruptTable, match=r"a\.parquet"):
        file.read(struct(a=P("string")))

    def fails(name):
        raise StorageFailure("no answer")

    with pytest.raises(StorageFailure):
        list(FileReader(ReadTask("a", None), struct(), "none", ()).live_rows(fails, lambda d: None))


def test_a_store_that_fails_while_a_file_is_read_is_not_taken_for_a_damaged_file():
    file = File(pa.table({"a": range(100)}))

    class Fails(io.BytesIO):
        reads = 0

        def read(self, *args):
            Fails.reads += 1
            if Fails.reads > 1:
                raise StorageFailure("no answer")
            return super().read(*args)

    source = pa.PythonFile(Fails(file.content.to_pybytes()), mode="r")
    with pytest.raises(StorageFailure, match="no answer"):
        list(FileReader(ReadTask("a", None), struct(a=P("long")), "none", ()).live_rows(lambda name: source, lambda d: None))


def test_a_missing_file_is_named_with_a_remedy():
    def missing(name):
        raise NotFound(f"there is no '{name}'")

    with pytest.raises(NotFound, match=r"'x/a\.parquet' is in the table's log but not in storage") as raised:
        list(FileReader(ReadTask("x/a.parquet", 1), struct(a=P("long")), "none", ()).live_rows(missing, lambda d: None))
    assert raised.value.code == "DELTA_FILE_NOT_FOUND"


@pytest.mark.parametrize("batch_rows", [1, 3, 7, 1000])
@pytest.mark.parametrize("dead", [set(), {0}, {99}, {3, 4, 5, 50}, set(range(0, 100, 2)), set(range(20, 60)), set(range(100))])
def test_deletion_vectors_remove_rows_by_their_position(dead, batch_rows):
    file = File(pa.table({"v": range(100), "s": [str(i) for i in range(100)], "l": [[i] for i in range(100)]}), row_group_size=17)
    schema = struct(v=P("long"), s=P("string"), l=ArrayType(P("long")))
    actual = file.read(
        schema, vector=inline_descriptor(BitMap64(dead)), batch_rows=batch_rows, extra=ExtraColumns(row_index_column="at")
    )
    alive = [i for i in range(100) if i not in dead]
    assert actual.to_pydict() == {"v": alive, "s": [str(i) for i in alive], "l": [[i] for i in alive], "at": alive}


def test_a_vector_with_a_position_beyond_the_file_is_refused():
    with pytest.raises(CorruptTable, match="removes row 2, but the file has 2 rows"):
        File(pa.table({"v": [1, 2]})).read(struct(v=P("long")), vector=inline_descriptor(BitMap64([2])))


PREDICATES = [
    Comparison("=", Column(("v",)), literal(40)),
    Comparison("!=", Column(("v",)), literal(40)),
    Comparison("<", Column(("v",)), literal(10)),
    Comparison("<=", Column(("v",)), literal(10)),
    Comparison(">", Column(("v",)), literal(90)),
    Comparison(">=", Column(("v",)), literal(90)),
    Comparison("<=>", Column(("n",)), literal(None)),
    Comparison("<=>", Column(("n",)), literal(7)),
    In(Column(("v",)), (literal(3), literal(77), literal(None))),
    Not(In(Column(("v",)), (literal(3), literal(77)))),
    IsNull(Column(("n",))),
    IsNotNull(Column(("n",))),
    StartsWith(Column(("s",)), "v4"),
    Comparison(">", Column(("f",)), literal(98.0, "double")),
    Comparison("=", Column(("f",)), literal(float("nan"), "double")),
    Comparison("<", Column(("f",)), literal(5.0, "double")),
    Comparison(">", Column(("d",)), Literal(Decimal("97.5"), DecimalType(10, 2))),
    Comparison("<", Column(("t",)), literal(datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC), "timestamp")),
    Comparison("=", Column(("day",)), literal(date(1970, 1, 5), "date")),
    Comparison("=", Column(("st", "x")), literal(60)),
    Comparison("=", Column(("b",)), literal(True, "boolean")),
    Comparison("=", Column(("missing",)), literal(1)),
    IsNull(Column(("missing",))),
    And((Comparison(">", Column(("v",)), literal(30)), Comparison("<", Column(("v",)), literal(40)))),
    Or((Comparison("<", Column(("v",)), literal(3)), Comparison(">", Column(("v",)), literal(97)))),
    Not(Or((Comparison("<", Column(("v",)), literal(50)), IsNull(Column(("n",)))))),
    Comparison("=", Column(("p",)), literal("x", "string")),
    Comparison("=", Column(("p",)), literal("y", "string")),
]
SORTED = pa.table(
    {
        "v": range(100),
        "n": [None] * 50 + list(range(50)),
        "s": [f"v{i:02d}" for i in range(100)],
        "f": [float(i) for i in range(99)] + [float("nan")],
        "d": pa.array([Decimal(i) for i in range(100)], pa.decimal128(10, 2)),
        "t": pa.array([i * 1_000_000 for i in range(100)], pa.timestamp("us", "UTC")),
        "day": pa.array(range(100), pa.int32()).cast(pa.date32()),
        "st": [{"x": i} if i % 3 == 0 else None for i in range(100)],
        "b": [False] * 99 + [True],
    }
)
SORTED_SCHEMA = struct(
    v=P("long"),
    n=P("long"),
    s=P("string"),
    f=P("double"),
    d=DecimalType(10, 2),
    t=P("timestamp"),
    day=P("date"),
    st=struct(x=P("long")),
    b=P("boolean"),
    missing=P("long"),
    p=P("string"),
)


@pytest.mark.parametrize("predicate", PREDICATES, ids=str)
@pytest.mark.parametrize("dead", [set(), {0, 40, 41, 97}])
def test_a_predicate_gives_the_same_rows_with_row_groups_pruned_as_in_one_group(predicate, dead):
    values = {
        "partition_columns": ["p"],
        "partition_values": {"p": "x"},
        "vector": inline_descriptor(BitMap64(dead)),
        "extra": ExtraColumns(row_index_column="at"),
    }
    first = File(SORTED, row_group_size=1000, write_statistics=False).read(SORTED_SCHEMA, predicate=predicate, **values)
    many = File(SORTED, row_group_size=7).read(SORTED_SCHEMA, predicate=predicate, **values)
    assert many.to_pylist().__repr__() == first.to_pylist().__repr__()
    assert all(at == v for at, v in zip(many["at"].to_pylist(), many["v"].to_pylist(), strict=True))


def test_row_groups_that_cannot_match_are_not_read():
    file = File(SORTED.select(["v", "s"]), row_group_size=10, compression="none")
    content = bytearray(file.content.to_pybytes())
    metadata = pq.ParquetFile(pa.BufferReader(file.content)).metadata
    for group in range(10):
        if group != 4:
            for column in range(2):
                chunk = metadata.row_group(group).column(column)
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.content = pa.py_buffer(bytes(content))
    schema = struct(v=P("long"), s=P("string"))
    actual = file.read(schema, predicate=Comparison("=", Column(("v",)), literal(44)), extra=ExtraColumns(row_index_column="at"))
    assert actual.to_pydict() == {"v": [44], "s": ["v44"], "at": [44]}
    with pytest.raises(CorruptTable):
        file.read(schema)


def test_row_ids_and_versions_follow_base_and_position_unless_materialised():
    file = File(
        pa.table({"v": range(5), "_id": [None, 70, None, None, 71], "_version": [None, None, 3, None, None]}), row_group_size=2
    )
    tracking = ExtraColumns("_row_id", "_row_commit_version", "_id", "_version")
    values = {
        "extra": tracking,
        "base_row_id": 100,
        "default_row_commit_version": 9,
        "vector": inline_descriptor(BitMap64([0])),
    }
    actual = file.read(struct(v=P("long")), **values)
    assert actual.to_pydict() == {"v": [1, 2, 3, 4], "_row_id": [70, 102, 103, 71], "_row_commit_version": [9, 3, 9, 9]}


def test_row_ids_without_materialised_columns_or_base_are_the_default_or_null():
    file = File(pa.table({"v": [1, 2]}))
    tracking = ExtraColumns("id", "version", "absent", None)
    actual = file.read(struct(v=P("long")), extra=tracking, base_row_id=5, default_row_commit_version=2)
    assert actual.to_pydict() == {"v": [1, 2], "id": [5, 6], "version": [2, 2]}
    assert file.read(struct(), extra=tracking).to_pydict() == {"id": [None, None], "version": [None, None]}


def test_the_reader_works_where_only_pyarrow_and_pyroaring_are_installed(tmp_path):
    """Spark's executors have no more than these."""
    pq.write_table(pa.table({"v": range(10)}), tmp_path / "a.parquet")
    program = f"""
import sys
allowed = ("pyarrow", "pyroaring", "tahoe", "numpy")
class Block:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in allowed and not top.startswith(("_", "sitecustomize")):
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Block())
import pyarrow as pa
from tahoe.protocol.dv import decode, inline_descriptor
from tahoe.schema.types import schema_from_json
from tahoe.snapshot.arrow_reader import FileReader, ReadTask
from pyroaring import BitMap64
import pickle
task = ReadTask("a.parquet", None, deletion_vector=inline_descriptor(BitMap64([1, 2])))
task = pickle.loads(pickle.dumps(task))
schema = schema_from_json('{{"type":"struct","fields":[{{"name":"v","type":"long","nullable":true,"metadata":{{}}}}]}}')
open_input = lambda name: pa.memory_map({str(tmp_path)!r} + "/" + name)
batches = list(FileReader(task, schema, "none", ()).live_rows(open_input, lambda d: decode(d, None, "file:///t")))
assert pa.Table.from_batches(batches)["v"].to_pylist() == [0, 3, 4, 5, 6, 7, 8, 9]
for name in ("obstore", "sqlglot", "rich", "typer", "pyspark", "pyiceberg", "pandas"):
    assert name not in sys.modules, name
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, cwd=Path(__file__).parents[3])


@pytest.mark.parametrize(
    "change", [lambda data: data[:-1], lambda data: data + b"\0", lambda data: b""], ids=["cut", "longer", "empty"]
)
def test_a_file_that_has_not_the_size_of_the_log_is_reported_when_it_is_opened(change):
    file = File(pa.table({"a": [1, 2]}))
    task = ReadTask("x/a.parquet", file.content.size)
    content = change(file.content.to_pybytes())
    with pytest.raises(CorruptTable, match=r"'x/a.parquet' has .* bytes, but the table's log says") as caught:
        list(FileReader(task, struct(a=P("long")), "none", ()).live_rows(lambda name: pa.BufferReader(content), lambda d: None))
    assert caught.value.code == "TAHOE_DATA_FILE_SIZE" and caught.value.facts["file"] == "x/a.parquet"


@pytest.mark.parametrize("nested", [False, True], ids=["column", "in a list"])
def test_bytes_that_are_no_text_are_an_error_that_names_file_and_column(nested):
    """Arrow does not check them; a caller of Tahoe relies on valid text."""
    offsets, content = pa.array([0, 2, 4], pa.int32()), b"ab\xc3\x28"
    values = pa.Array.from_buffers(pa.string(), 2, [None, offsets.buffers()[1], pa.py_buffer(content)])
    values = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), values) if nested else values
    kind = ArrayType(P("string"), True) if nested else P("string")
    with pytest.raises(CorruptTable, match=r"Column 's' of data file 'a\.parquet' contains text that is not UTF-8") as caught:
        File(pa.table({"s": values})).read(struct(s=kind))
    assert caught.value.code == "TAHOE_DATA_FILE_DAMAGED"
