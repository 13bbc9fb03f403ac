"""The law of data skipping: a file that is left out has no row for which the predicate is TRUE, wherever its statistics came from."""

from __future__ import annotations

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.protocol.partition import serialize
from tahoe.protocol.skipping import keep
from tahoe.protocol.statistics.bounds import NAN_COUNTED
from tahoe.protocol.statistics.collect import indexed_columns, statistics_of_footer, statistics_of_table, stats_arrow_type
from tahoe.protocol.statistics.stats_json import parse_statistics
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.types import StructType
from tests.sampling import examples
from tests.unit.expr import sql_model
from tests.unit.protocol import reference_writer

KINDS = sorted(sql_model.POOLS)
PARTITION_KINDS = sorted(set(KINDS) - {"binary"})


def table_of(rows: list[dict[str, Any]], schema: StructType) -> pa.Table:
    return pa.Table.from_pylist(rows, to_arrow_schema(schema))


def from_rows(data: pa.Table, schema: StructType, partition_columns: list[str]) -> str:
    indexed = indexed_columns(schema, partition_columns, {})
    return statistics_of_table(data.drop_columns(partition_columns), schema, indexed).to_json()


def from_footer(data: pa.Table, schema: StructType, decimals_as_integers: bool) -> str:
    file = io.BytesIO()
    pq.write_table(data, file, row_group_size=2, store_decimal_as_integer=decimals_as_integers)
    return statistics_of_footer(pq.read_metadata(io.BytesIO(file.getvalue())), schema).to_json()


def files_table(statistics: list[str], partitions: list[dict[str, str | None]]) -> pa.Table:
    """Files of which Tahoe collected the statistics."""
    tags = [[(NAN_COUNTED, "true")]] * len(statistics)
    return pa.table(
        {
            "partitionValues": pa.array([list(each.items()) for each in partitions], pa.map_(pa.string(), pa.string())),
            "stats": pa.array(statistics, pa.string()),
            "tags": pa.array(tags, pa.map_(pa.string(), pa.string())),
        }
    )


@settings(max_examples=examples(40))
@given(st.data())
def test_a_file_that_is_left_out_has_no_row_that_matches(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2))
    nested = data.draw(st.lists(st.sampled_from(KINDS), max_size=1))
    schema = sql_model.schema_of(kinds, nested)
    files = data.draw(st.lists(sql_model.rows(kinds, nested, max_size=3), min_size=2, max_size=4))
    tables = [table_of(rows, schema) for rows in files]
    texts = [from_rows(table, schema, []) for table in tables]
    texts += [from_footer(table, schema, data.draw(st.booleans())) for table in tables]
    log = files_table(texts, [{}] * len(texts))
    parsed = log.append_column("stats_parsed", parse_statistics(log["stats"], stats_arrow_type(schema)))
    for predicate in data.draw(st.lists(sql_model.predicates(sql_model.columns_of(kinds, nested)), min_size=4, max_size=8)):
        matches = [any(sql_model.answer(predicate, row) is True for row in rows) for rows in files] * 2
        selected = keep(predicate, log, schema, []).to_pylist()
        wrong = [texts[i] for i in range(len(texts)) if matches[i] and not selected[i]]
        assert not wrong, (str(predicate), wrong)
        assert keep(predicate, parsed, schema, []).to_pylist() == selected


@settings(max_examples=examples(40))
@given(st.data())
def test_on_partition_columns_the_answer_is_exact(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(PARTITION_KINDS), min_size=2, max_size=3))
    schema = sql_model.schema_of(kinds, [])
    rows = data.draw(sql_model.rows(kinds, [], max_size=5))
    partitioned = [f"c{i}" for i in range(len(kinds))]
    # An empty text and NULL are one partition.
    rows = [{name: None if value == "" else value for name, value in row.items()} for row in rows]
    partitions = [{column.name: serialize(row[column.name], column.data_type) for column in schema} for row in rows]
    log = files_table(['{"numRecords":1}'] * len(rows), partitions)
    for predicate in data.draw(st.lists(sql_model.predicates(sql_model.columns_of(kinds, [])), min_size=2, max_size=5)):
        expected = [sql_model.answer(predicate, row) is True for row in rows]
        assert keep(predicate, log, schema, partitioned).to_pylist() == expected, str(predicate)


@settings(max_examples=examples(40))
@given(st.data())
def test_a_predicate_over_partitions_and_data_leaves_out_no_matching_row(data: st.DataObject) -> None:
    kinds = [data.draw(st.sampled_from(PARTITION_KINDS)), data.draw(st.sampled_from(KINDS))]
    schema = sql_model.schema_of(kinds, [])
    files = data.draw(st.lists(sql_model.rows(kinds, [], max_size=3), min_size=1, max_size=4))
    value = st.sampled_from([None, *(each for each in sql_model.POOLS[kinds[0]][1] if each != "")])
    files = [[{**row, "c0": shared} for row in rows] for rows in files for shared in [data.draw(value)]]
    partitions = [{"c0": serialize(rows[0]["c0"], schema.field("c0").data_type) if rows else None} for rows in files]
    log = files_table([from_rows(table_of(rows, schema), schema, ["c0"]) for rows in files], partitions)
    for predicate in data.draw(st.lists(sql_model.predicates(sql_model.columns_of(kinds, [])), min_size=2, max_size=5)):
        selected = keep(predicate, log, schema, ["c0"]).to_pylist()
        for rows, is_kept in zip(files, selected, strict=True):
            assert is_kept or not any(sql_model.answer(predicate, row) is True for row in rows), str(predicate)


def bulk_checks(seeds: range) -> tuple[int, int]:
    """Checks made, and files left out, over everything that these seeds make up."""
    checks = left_out = 0
    for seed in seeds:
        chance = random.Random(seed)
        kinds, nested = chance.choices(KINDS, k=3), chance.choices(KINDS, k=1)
        schema = sql_model.schema_of(kinds, nested)
        files = [sql_model.random_rows(chance, kinds, nested, max_size=3) for _ in range(8)]
        tables = [table_of(rows, schema) for rows in files]
        texts = [from_rows(table, schema, []) for table in tables]
        texts += [from_footer(table, schema, bool(seed % 2)) for table in tables]
        texts += [reference_writer.statistics(rows, schema) for rows in files]
        log = files_table(texts, [{}] * len(texts))
        for _ in range(20):
            predicate = sql_model.random_predicate(chance, sql_model.columns_of(kinds, nested))
            selected = keep(predicate, log, schema, []).to_pylist()
            for rows, is_kept, text in zip(files * 3, selected, texts, strict=True):
                matches = not is_kept and any(sql_model.answer(predicate, row) is True for row in rows)
                assert not matches, (seed, str(predicate), text)
            checks += len(selected)
            left_out += selected.count(False)
    return checks, left_out


def test_thousands_of_predicates_and_files_lose_no_row_and_many_files_are_left_out() -> None:
    checks, left_out = bulk_checks(range(20))
    assert checks >= 8_000
    assert left_out >= checks // 4


@pytest.mark.soak
def test_a_million_predicates_and_files_lose_no_row() -> None:
    checks, _ = bulk_checks(range(1_000, 4_000))
    assert checks >= 1_000_000
