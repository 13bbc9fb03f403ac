"""Which row groups of a checkpoint are read for a predicate, judged by the footers of real Parquet files."""

from __future__ import annotations

import io
import math
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.predicate import FALSE, Predicate
from tahoe.protocol.skipping import keep, stats_predicate
from tahoe.protocol.statistics.checkpoint_row_groups import row_groups_to_read
from tahoe.protocol.statistics.collect import stats_arrow_type
from tahoe.protocol.statistics.stats_json import parse_statistics
from tahoe.schema.types import DecimalType, PrimitiveType, StructField, StructType
from tests.unit.expr import sql_model
from tests.unit.protocol import reference_writer

SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("s", PrimitiveType("string")),
        StructField("x", PrimitiveType("double")),
        StructField("t", PrimitiveType("timestamp")),
        StructField("d", PrimitiveType("date")),
        StructField("dec", DecimalType(10, 2)),
        StructField("st", StructType((StructField("y", PrimitiveType("integer")),))),
        StructField("p", PrimitiveType("string")),
    )
)


def checkpoint(adds: list[dict[str, Any] | None], rows: int, **options: Any) -> pq.FileMetaData:
    """The footer of a checkpoint with these rows; None is a row of another action."""
    kind = pa.struct(
        {
            "path": pa.string(),
            "stats_parsed": stats_arrow_type(SCHEMA),
            "partitionValues_parsed": pa.struct({"p": pa.string()}),
        }
    )
    sink = io.BytesIO()
    pq.write_table(pa.table({"add": pa.array(adds, kind)}), sink, row_group_size=rows, **options)
    return pq.read_metadata(io.BytesIO(sink.getvalue()))


def add(partition: str | None = "a", least: Any = None, greatest: Any = None, nulls: Any = None) -> dict[str, Any]:
    statistics = {"numRecords": 10, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return {"path": "f", "stats_parsed": statistics, "partitionValues_parsed": {"p": partition}}


def ids(*ranges: tuple[int, int]) -> list[dict[str, Any] | None]:
    return [add(least={"id": low}, greatest={"id": high}, nulls={"id": 0}) for low, high in ranges]


def groups(condition: str, metadata: pq.FileMetaData) -> list[int]:
    return row_groups_to_read(metadata, stats_predicate(row_condition(condition, SCHEMA).predicate, SCHEMA, ["p"]))


def test_row_groups_whose_files_are_all_left_out_are_not_read() -> None:
    metadata = checkpoint(ids((1, 2), (3, 4), (11, 12), (13, 14), (21, 22), (5, 6)), 2)
    assert groups("id = 3", metadata) == [0]
    assert groups("id = 11", metadata) == [1, 2]
    assert groups("id > 14", metadata) == [2]
    assert groups("id < 3 OR id > 20", metadata) == [0, 2]
    assert groups("id = 3 AND id = 13", metadata) == []
    assert groups("id IN (4, 30)", metadata) == [0]
    assert groups("id IS NULL", metadata) == []
    assert groups("id IS NOT NULL", metadata) == [0, 1, 2]


def test_a_file_without_statistics_keeps_its_row_group() -> None:
    metadata = checkpoint([*ids((1, 2)), add(), *ids((1, 2), (1, 2))], 2)
    assert groups("id = 9", metadata) == [0]
    assert groups("st.y = 9", metadata) == [0, 1]


def test_rows_of_other_actions_do_not_count_as_unknown() -> None:
    metadata = checkpoint([None, *ids((1, 2)), None, *ids((8, 9)), None, None], 2)
    assert groups("id = 1", metadata) == [0]
    assert groups("id = 9", metadata) == [1]
    assert row_groups_to_read(metadata, None) == [0, 1]


def test_partition_values_choose_row_groups() -> None:
    metadata = checkpoint([add("a"), add("b"), add("c"), add("d"), add(None), add("e")], 2)
    assert groups("p = 'b'", metadata) == [0, 2]  # a partition value that is null may as well be one that was not written
    assert groups("p LIKE 'c%'", metadata) == [1, 2]
    assert groups("p NOT LIKE 'c%'", metadata) == [0, 1, 2]


def test_every_kind_of_bound_is_understood() -> None:
    first = {"id": 1, "s": "a", "x": 1.0, "t": 0, "d": 0, "dec": 1, "st": {"y": 1}}
    second = {"id": 9, "s": "z", "x": 9.0, "t": 9_000_000, "d": 9, "dec": 9, "st": {"y": 9}}
    metadata = checkpoint([add(least=each, greatest=each, nulls={"id": 0}) for each in (first, second)], 1)
    for condition in ("id > 5", "s > 'm'", "t > '1970-01-01 00:00:05'", "d > '1970-01-05'", "dec > 5", "st.y > 5", "s LIKE 'z%'"):
        assert groups(condition, metadata) == [1], condition
    for condition in (
        "id < 5",
        "s < 'm'",
        "x < 5",
        "t < '1970-01-01 00:00:05'",
        "d != '1970-01-10'",
        "dec = 1",
        "st.y NOT IN (9)",
    ):
        assert groups(condition, metadata) == [0], condition


def test_a_greatest_float_may_hide_nan_and_is_not_believed() -> None:
    metadata = checkpoint([add(least={"x": 1.0}, greatest={"x": each}, nulls={"x": 0}) for each in (2.0, math.nan)], 2)
    assert groups("x > 5", metadata) == [0]
    assert groups("x < 1", metadata) == []


def test_a_checkpoint_without_parsed_statistics_is_read_whole() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"add": pa.array([{"path": "f"}, {"path": "g"}])}), sink, row_group_size=1)
    assert groups("id = 9", pq.read_metadata(io.BytesIO(sink.getvalue()))) == [0, 1]
    assert groups("id = 9", checkpoint(ids((1, 2), (3, 4)), 1, write_statistics=False)) == [0, 1]


def test_a_condition_that_nothing_fulfils_reads_nothing() -> None:
    assert row_groups_to_read(checkpoint(ids((1, 2)), 1), FALSE) == []


def test_no_row_group_is_left_out_that_has_a_file_to_keep() -> None:
    left_out = 0
    for seed in range(40):
        chance = random.Random(seed)
        kinds = chance.choices(sorted(set(sql_model.POOLS) - {"binary"}), k=3)
        schema = sql_model.schema_of(kinds, ["integer"])
        texts = [reference_writer.statistics(sql_model.random_rows(chance, kinds, ["integer"], 2), schema) for _ in range(6)]
        log = pa.table({"stats": pa.array(texts)})
        parsed = parse_statistics(log["stats"], stats_arrow_type(schema)).combine_chunks()
        adds = pa.StructArray.from_arrays([pa.array(["f"] * 6), parsed], names=["path", "stats_parsed"])
        sink = io.BytesIO()
        pq.write_table(pa.table({"add": adds}), sink, row_group_size=2)
        metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
        for _ in range(20):
            predicate: Predicate = sql_model.random_predicate(chance, sql_model.columns_of(kinds, ["integer"]))
            selected = keep(predicate, log, schema, []).to_pylist()
            read = row_groups_to_read(metadata, stats_predicate(predicate, schema, []))
            lost = [i for i in range(3) if i not in read and any(selected[2 * i : 2 * i + 2])]
            assert not lost, (seed, str(predicate))
            left_out += 3 - len(read)
    assert left_out > 250
