"""Encoding of data files: row groups, and columns with and without dictionaries."""

from __future__ import annotations

import json

import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import StorageFailure
from tahoe.ops.write import parquet_files
from tahoe.ops.write.writer import write_arrow
from tahoe.schema.arrow import from_arrow_schema
from tahoe.store.location import decode_path
from tahoe.store.object_store import open_store
from tests.unit.ops.write.test_writer import config_of


@pytest.fixture
def store(memory_url):
    return open_store(memory_url)


@pytest.fixture
def in_row_groups(tmp_path, monkeypatch):
    """A local store, whose files are written row group by row group."""
    monkeypatch.setattr("tahoe.ops.write.parquet_files.BYTES_OF_A_GROUP", 10_000)
    monkeypatch.setattr("tahoe.ops.write.writer._BYTES_WORTH_A_THREAD", 0)
    return open_store(tmp_path.as_uri())


def test_a_large_local_file_is_written_row_group_by_row_group(in_row_groups, tmp_path):
    data = pa.table({"id": pa.array(range(9_000), pa.int64()), "text": [f"text {number}" for number in range(9_000)]})
    config = config_of(from_arrow_schema(data.schema))
    (add,) = write_arrow(config, in_row_groups, data, SeededClock())
    file = pq.ParquetFile(tmp_path / add.path)
    assert file.num_row_groups > 5 and add.size == (tmp_path / add.path).stat().st_size
    assert file.read().equals(data) and polars.read_parquet(tmp_path / add.path).to_arrow().cast(data.schema).equals(data)
    stats = json.loads(add.stats)
    assert stats["numRecords"] == 9_000
    assert (stats["minValues"], stats["maxValues"]) == ({"id": 0, "text": "text 0"}, {"id": 8_999, "text": "text 999"})


def test_a_row_group_that_cannot_be_encoded_leaves_no_part_of_a_file(in_row_groups, tmp_path, monkeypatch):
    encode, encoded = parquet_files._encoded_group, []

    def failing(options, rows):
        encoded.append(rows)
        if len(encoded) == 4:
            raise StorageFailure("no memory is left", code="TAHOE_STORAGE")
        return encode(options, rows)

    monkeypatch.setattr(parquet_files, "_encoded_group", failing)
    data = pa.table({"id": pa.array(range(9_000), pa.int64())})
    with pytest.raises(StorageFailure, match="no memory is left"):
        write_arrow(config_of(from_arrow_schema(data.schema)), in_row_groups, data, SeededClock())
    assert len(encoded) >= 4 and not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [20_000, 100_000])
def test_columns_that_hold_next_to_nothing_twice_get_no_dictionary(store, count):
    numbers = pa.array(range(count))
    data = pa.table(
        {
            "key": numbers,
            "text": numbers.cast(pa.string()),
            "few": pc.bit_wise_and(numbers, 1023),
            "runs": pc.divide(numbers, 8),
            "nulls": pa.nulls(count, pa.int64()),
            "nested": pa.StructArray.from_arrays([numbers], ["x"]),
        }
    )
    adds = write_arrow(config_of(from_arrow_schema(data.schema)), store, data, SeededClock())
    row_group = pq.read_metadata(store.open_input(decode_path(adds[0].path, store.url))).row_group(0)
    columns = [row_group.column(i) for i in range(row_group.num_columns)]
    assert {c.path_in_schema for c in columns if not c.has_dictionary_page} == {"key", "text", "nested.x"}
