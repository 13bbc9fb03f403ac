"""Files joined without decoding them are one file to every reader, and footers go through Thrift unharmed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.log.checkpoints.footer_check import fault_in_footer
from tahoe.protocol.statistics.parquet_join import join_parquet, joined_parts, replace_columns
from tahoe.protocol.statistics.thrift import footer_of, read_struct, with_footer, write_struct

SCHEMA = pa.schema([("i", pa.int64()), ("s", pa.struct([("t", pa.string()), ("l", pa.list_(pa.float64()))])), ("b", pa.bool_())])


def _rows(count: int, chance: random.Random) -> pa.Table:
    rows = [
        {
            "i": chance.choice([None, chance.randrange(99)]),
            "s": {"t": "x" * chance.randrange(9), "l": [0.5] * chance.randrange(3)},
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def _file(table: pa.Table, row_group: int = 1_000) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=row_group, compression="zstd", write_page_checksum=True)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("sizes", [[5], [5, 7], [0, 3], [3, 0], [2_500, 1, 999, 0, 40]])
def test_joined_files_are_one_file(sizes: list[int], tmp_path: Path) -> None:
    chance = random.Random(len(sizes))
    tables = [_rows(size, chance) for size in sizes]
    joined = join_parquet([_file(table) for table in tables])
    path = tmp_path / "joined.parquet"
    path.write_bytes(joined)
    file = pq.ParquetFile(path, page_checksum_verification=True)
    assert file.read().equals(pa.concat_tables(tables))
    assert file.metadata.num_rows == sum(sizes)
    assert duckdb.sql(f"SELECT count(*), sum(i) FROM '{path}'").fetchone() == (
        sum(sizes),
        sum(value for table in tables for value in table.column("i").to_pylist() if value is not None) or None,
    )
    start, _ = footer_of(joined)
    assert fault_in_footer(joined[start:-8]) is None


def test_parts_are_joined_as_the_files_arrive() -> None:
    files, arrived = [_file(_rows(9, random.Random(number))) for number in range(3)], list[bytes]()

    def arriving() -> Iterator[bytes]:
        for file in files:
            arrived.append(file)
            yield file

    parts = []
    for part in joined_parts(arriving()):
        parts.append(part)
        assert len(arrived) == min(len(parts) - 1, 3)
    assert b"".join(parts) == join_parquet(files)


def test_a_footer_is_written_as_it_was_read() -> None:
    data = _file(_rows(3_000, random.Random(1)), row_group=700)
    start, footer = footer_of(data)
    assert data[start:] == with_footer(footer)
    assert write_struct(read_struct(data[start:-8])) == data[start:-8]


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"PAR1\x00\x00\x00\x00PAR1"[:10], b"PAR1" + b"\xff\xff\xff\x7fPAR1", b"no Parquet at all"]
)
def test_bytes_without_a_footer_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptTable):
        footer_of(data)


def test_random_bytes_are_a_struct_or_refused() -> None:
    chance = random.Random(0)
    for _ in range(2_000):
        data = chance.randbytes(chance.randrange(60))
        try:
            read_struct(data)
        except CorruptTable:
            continue


def _with_blooms(rows: pa.Table, sizes: list[int], **options: object) -> bytes:
    sink, start = pa.BufferOutputStream(), 0
    filters = {name: {"ndv": 1000, "fpp": 0.01} for name in ("i", "t") if name in rows.column_names}
    with pq.ParquetWriter(sink, rows.schema, store_schema=False, bloom_filter_options=filters, **options) as writer:
        for size in sizes:
            writer.write_table(rows.slice(start, size))
            start += size
    return bytes(sink.getvalue().to_pybytes())


def _numbers(count: int) -> pa.Table:
    return pa.table(
        {
            "i": pa.array(range(count), pa.int64()),
            "t": [None if number % 7 == 0 else f"text {number}" for number in range(count)],
            "s": [{"a": number, "b": [number]} for number in range(count)],
            "x": [number / 2 for number in range(count)],
        }
    )


@pytest.mark.parametrize("replaced", [["i"], ["t", "x"], ["s"], ["i", "t", "s", "x"]], ids=str)
@pytest.mark.parametrize("options", [{}, {"compression": "zstd", "write_page_index": True, "write_page_checksum": True}], ids=str)
def test_columns_are_replaced_and_the_others_are_as_before(
    replaced: list[str], options: dict[str, object], tmp_path: Path
) -> None:
    old, sizes = _numbers(1200), [500, 700]
    new = old.take(pa.array(range(1199, -1, -1))).select(replaced)
    joined = replace_columns(_with_blooms(old, sizes, **options), _with_blooms(new, sizes))
    assert joined is not None
    path = tmp_path / "joined.parquet"
    path.write_bytes(joined)
    expected = pa.table({name: (new if name in replaced else old).column(name) for name in old.column_names})
    file = pq.ParquetFile(path, page_checksum_verification=True)
    assert file.read().equals(expected)
    assert [file.metadata.row_group(number).num_rows for number in range(2)] == sizes
    least = pc.min(expected["i"].slice(500)).as_py()
    assert file.metadata.row_group(1).column(0).statistics.min == least
    for value in (3, 1199):  # bloom filters are where the footer says
        assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE i = {value} OR t = 'text {value}'").fetchone() == (
            len(
                {
                    place
                    for place in range(1200)
                    if expected["i"][place].as_py() == value or expected["t"][place].as_py() == f"text {value}"
                }
            ),
        )
    filters = duckdb.sql(f"SELECT count(*) FROM parquet_metadata('{path}') WHERE bloom_filter_length > 0").fetchone()
    assert filters == (4,)
    start, _ = footer_of(joined)
    assert fault_in_footer(joined[start:-8]) is None


def test_columns_that_cannot_be_copied_are_left_to_the_caller() -> None:
    old = _with_blooms(_numbers(100), [60, 40])
    new = _numbers(100).select(["x"])
    assert replace_columns(old, _with_blooms(new, [60, 40])) is not None
    assert replace_columns(old, _with_blooms(new, [50, 50])) is None, "other row groups"
    assert replace_columns(old, _with_blooms(new.rename_columns(["y"]), [60, 40])) is None, "a column that the file lacks"
    nested = pa.table({"x": [{"a": 1, "b": 2}] * 100})
    assert replace_columns(old, _with_blooms(nested, [60, 40])) is None, "other leaves"
    start, footer = footer_of(old)
    unknown = old[:start] + with_footer(footer | {6: (8, b"parquet-cpp version 1.0.0")})
    assert replace_columns(unknown, _with_blooms(new, [60, 40])) is None, "a writer that states sizes wrongly"
    encrypted = old[:start] + with_footer(footer | {8: (12, {1: (12, {})})})
    assert replace_columns(encrypted, _with_blooms(new, [60, 40])) is None
