"""Filter columns first: the rows are those of a read of all columns, and nothing else is decoded where no row matches."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from tahoe.base.exceptions import CorruptTable
from tahoe.expr.compute.evaluate import filter_table
from tahoe.expr.tree.predicate import And, Column, Comparison, In, IsNotNull, IsNull, Literal, Not, Or, StartsWith
from tahoe.protocol.dv import decode, inline_descriptor
from tahoe.schema.mapping import ID_KEY, PHYSICAL_NAME_KEY
from tahoe.schema.types import ArrayType, DecimalType, MapType, PrimitiveType, StructField, StructType
from tahoe.snapshot import arrow_reader, file_row_groups
from tahoe.snapshot.arrow_reader import FileReader, FileReadOptions, ReadTask, RowsToRead
from tahoe.snapshot.late_columns import OtherColumns

ROWS = 600
chance = random.Random(26)


def some(value):
    return None if chance.random() < 0.1 else value


TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "n": pa.array([some(chance.randrange(50)) for _ in range(ROWS)], pa.int64()),
        "word": pa.array([some(f"word{chance.randrange(9)}") for _ in range(ROWS)], pa.string()),
        "text": pa.array([some(f"a text {number} é") for number in range(ROWS)], pa.string()),
        "price": pa.array([some(Decimal(chance.randrange(1000)) / 100) for _ in range(ROWS)], pa.decimal128(9, 2)),
        "day": pa.array([some(date(2024, 1, 1 + chance.randrange(28))) for _ in range(ROWS)], pa.date32()),
        "list": pa.array([some([f"x{number}"] * chance.randrange(3)) for number in range(ROWS)], pa.list_(pa.string())),
        "map": pa.array([some([(f"k{number}", number)]) for number in range(ROWS)], pa.map_(pa.string(), pa.int64())),
        "pair": pa.array(
            [some({"a": number, "b": some("b")}) for number in range(ROWS)], pa.struct([("a", pa.int32()), ("b", pa.string())])
        ),
    }
)
TYPES = {
    "id": PrimitiveType("long"),  # widened since the file was written
    "n": PrimitiveType("long"),
    "word": PrimitiveType("string"),
    "text": PrimitiveType("string"),
    "price": DecimalType(9, 2),
    "day": PrimitiveType("date"),
    "list": ArrayType(PrimitiveType("string"), True),
    "map": MapType(PrimitiveType("string"), PrimitiveType("long"), True),
    "pair": StructType((StructField("a", PrimitiveType("integer")), StructField("b", PrimitiveType("string")))),
    "part": PrimitiveType("string"),
    "missing": PrimitiveType("double"),
}
SCHEMA = StructType(tuple(StructField(name, data_type) for name, data_type in TYPES.items()))


def equals(name, value, kind):
    return Comparison("=", Column((name,)), Literal(value, PrimitiveType(kind)))


PREDICATES = {
    "few": equals("n", 7, "long"),
    "one row": equals("id", 434, "long"),
    "none": And((equals("n", 7, "long"), equals("word", "nothing", "string"))),
    "most": Not(equals("n", 7, "long")),
    "all": Or((IsNull(Column(("n",))), IsNotNull(Column(("n",))))),
    "nulls": IsNull(Column(("word",))),
    "two columns": Or((StartsWith(Column(("word",)), "word3"), In(Column(("id",)), (Literal(5, PrimitiveType("long")),)))),
    "with a partition value": And((equals("part", "p", "string"), equals("n", 7, "long"))),
    "another partition": And((equals("part", "q", "string"), equals("n", 7, "long"))),
    "nested": Comparison("=", Column(("pair", "a")), Literal(450, PrimitiveType("integer"))),
    "a missing column": And((IsNull(Column(("missing",))), equals("n", 7, "long"))),
}


@pytest.fixture(autouse=True)
def of_small_files(monkeypatch):
    """Small files are read as large ones are."""
    monkeypatch.setattr(arrow_reader, "_ROWS_WORTH_PARTS", 0)
    monkeypatch.setattr(file_row_groups, "_TINY", 0)
    monkeypatch.setattr(file_row_groups, "_ROWS_WORTH_A_DICTIONARY", 0)


def content(table=TABLE, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def read(data, predicate, vector=None, schema=SCHEMA, mode="none", **more):
    task = ReadTask("a.parquet", data.size, {"part": "p"}, None if vector is None else inline_descriptor(BitMap64(vector)))
    reader = FileReader(task, schema, mode, ("part",))
    batches = reader.live_rows(
        lambda _: pa.BufferReader(data), lambda of: decode(of, lambda _: b"", "file:///t"), predicate, FileReadOptions(**more)
    )
    return pa.Table.from_batches(batches, arrow_reader.to_arrow_schema(schema))


@pytest.mark.parametrize("vector", [None, range(0, ROWS, 3), range(ROWS)], ids=["all live", "a third deleted", "all deleted"])
@pytest.mark.parametrize("groups", [{"row_group_size": 90}, {}, {"use_dictionary": False, "write_statistics": False}], ids=str)
@pytest.mark.parametrize("predicate", PREDICATES.values(), ids=PREDICATES.keys())
def test_the_rows_are_those_of_a_read_of_all_columns(monkeypatch, predicate, groups, vector):
    monkeypatch.setattr(file_row_groups, "_LEAST_ROWS", 1)
    monkeypatch.setattr(file_row_groups, "_BYTES_OF_A_BATCH", 4000)
    data = content(**groups)
    actual = read(data, predicate, vector, batch_rows=70)
    expected = filter_table(predicate, read(data, None, vector))
    assert actual.equals(expected)
    actual.validate(full=True)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_found_by_their_physical_names_or_ids(mode):
    fields, columns = [], []
    for number, name in enumerate(("n", "word", "text"), 1):
        fields.append(StructField(name, TYPES[name], metadata={ID_KEY: number, PHYSICAL_NAME_KEY: f"col-{number}"}))
        columns.append(pa.field(f"col-{number}", TABLE.schema.field(name).type, metadata={"PARQUET:field_id": str(number)}))
    stored = TABLE.select(["n", "word", "text"]).cast(pa.schema([TABLE.schema.field(name) for name in ("n", "word", "text")]))
    stored = pa.Table.from_arrays(stored.columns, schema=pa.schema(columns))
    actual = read(content(stored, row_group_size=90), PREDICATES["few"], schema=StructType(tuple(fields)), mode=mode)
    assert actual.equals(TABLE.select(["n", "word", "text"]).filter(pc.equal(TABLE["n"], 7)))
    assert actual.num_rows > 5


def damaged(data, column):
    """Overwrite all pages of a column."""
    chunk = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(column)
    begin, size = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size
    return pa.py_buffer(data[:begin].to_pybytes() + b"\xff" * size + data[begin + size :].to_pybytes())


def test_other_columns_are_not_decoded_where_no_row_matches():
    data = damaged(content(), 3)
    assert read(data, PREDICATES["none"]).num_rows == 0
    with pytest.raises(CorruptTable, match=r"'a.parquet' cannot be read as Parquet"):
        read(data, PREDICATES["few"])


def test_other_columns_are_read_no_further_than_to_the_last_match():
    batches = [pa.record_batch({"v": pa.array(range(start, start + 10))}) for start in range(0, 50, 10)]
    drawn, needed = [], []

    def begin(until):
        needed.append(until)
        for batch in batches:
            drawn.append(batch)
            yield batch

    rest = OtherColumns(begin)
    assert not drawn
    assert rest.rows(pa.array([3, 4, 11], pa.uint64()), are_last=False).column(0).to_pylist() == [3, 4, 11]
    assert rest.rows(pa.array([12, 29], pa.uint64()), are_last=True).column(0).to_pylist() == [12, 29]
    assert needed == [None]
    assert len(drawn) == 3 and rest.bytes_read == 3 * batches[0].nbytes


@pytest.mark.parametrize("last", [0, 1, 2, 99, 100, 101, 199])
def test_a_batch_ends_at_the_last_match_of_a_row_group(last):
    file = pq.ParquetFile(pa.BufferReader(content(row_group_size=ROWS)))
    request, read_to = RowsToRead(None, None, FileReadOptions(batch_rows=100)), []

    def begin(until):
        for batch in request.batches(file, [0], ["text"], until):
            read_to.append(batch.num_rows)
            yield batch

    (text,) = OtherColumns(begin).rows(pa.array([last], pa.uint64()), are_last=True).column("text").to_pylist()
    assert text == file.read(["text"]).column("text")[last].as_py()
    assert last < sum(read_to) <= last + 2


def test_texts_stored_as_dictionaries_are_read_as_such_and_only_those():
    file = pq.ParquetFile(pa.BufferReader(content(row_group_size=90)))
    assert file_row_groups._stored_as_dictionary(file, [0], file.schema_arrow.names) == ["word"]
    assert file_row_groups._stored_as_dictionary(file, [0], ["n", "text"]) == []
    assert file_row_groups._stored_as_dictionary(file, [], ["word"]) == []
    plain = pq.ParquetFile(pa.BufferReader(content(use_dictionary=False)))
    assert file_row_groups._stored_as_dictionary(plain, [0], plain.schema_arrow.names) == []


@pytest.mark.parametrize("number", [2, -1])
def test_a_number_without_a_text_in_the_dictionary_is_an_error(number):
    indices, words = pa.array([0, number], pa.int32()), pa.array(["a", "b"])
    broken = pa.record_batch({"word": pa.DictionaryArray.from_arrays(indices, words, safe=False)})
    with pytest.raises(pa.ArrowInvalid, match="dictionary of column 'word' has 2 texts"):
        file_row_groups.plain(broken)


def test_texts_that_are_no_text_are_an_error_in_a_dictionary_too():
    offsets = pa.array([0, 2, 4], pa.int32()).buffers()[1]
    words = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab\xc3\x28")])
    stored = pa.table({"n": pa.array(range(400), pa.int64()), "word": pa.concat_arrays([words] * 200)})
    schema = StructType(tuple(StructField(name, TYPES[name]) for name in ("n", "word")))
    with pytest.raises(CorruptTable, match=r"Column 'word' of data file 'a.parquet' contains text that is not UTF-8"):
        read(content(stored), None, schema=schema)
    # Only texts of the result are decoded.
    assert read(content(stored), equals("n", 0, "long"), schema=schema)["word"].to_pylist() == ["ab"]
