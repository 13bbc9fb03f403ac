"""Files joined without decoding them are one file to every reader, and footers go through Thrift unharmed."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.log.checkpoints.footer_check import fault_in_footer
from tahoe.protocol.statistics.parquet_join import join_parquet
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
