"""The law of data skipping on whole tables: a file that a query leaves out has no living row for which the predicate is TRUE.

Columns of every kind, with and without column mapping; files whose rows deletion vectors have killed, so that bounds are wide; files of
UPDATE and of OPTIMIZE; statistics from commits and from checkpoints, as JSON, as columns, and both; partition columns.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.log.replay import add_files
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.snapshot.scan import Scan
from tahoe.store.object_store import open_store
from tests.unit.expr import sql_model

KINDS = sorted(sql_model.POOLS)
FILES, PREDICATES = 8, 32


def random_table(
    chance: random.Random, schema: StructType, kinds: list[str], nested: list[str]
) -> tuple[Table, list[dict[str, Any]]]:
    """A table of a few files, and all rows that were ever written to it, by number."""
    properties = {
        "delta.enableDeletionVectors": chance.choice(["true", "true", "false"]),
        "delta.columnMapping.mode": chance.choice(["none", "name", "id"]),
        "delta.checkpoint.writeStatsAsJson": chance.choice(["true", "false"]),
        "delta.checkpoint.writeStatsAsStruct": chance.choice(["true", "false"]),
        "delta.checkpointInterval": chance.choice(["3", "100"]),
    }
    if properties["delta.checkpoint.writeStatsAsJson"] == "false":
        properties["delta.checkpoint.writeStatsAsStruct"] = "true"
    partition_by = ["c0"] if chance.random() < 0.3 and kinds[0] != "binary" else []
    store = open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")
    table = Table.create(store.url, schema, partition_by=partition_by, properties=properties, store=store)
    rows: list[dict[str, Any]] = []
    while len(rows) < 3 * FILES:
        new = sql_model.random_rows(chance, kinds, nested, max_size=9)
        if partition_by:  # in partitions an empty text is NULL
            new = [{**row, "c0": None if row["c0"] == "" else row["c0"]} for row in new]
        rows += [{"row": len(rows) + number, **row} for number, row in enumerate(new)]
        if new:
            data = pa.Table.from_pylist(rows[-len(new) :], to_arrow_schema(schema))
            table.append(data, max_rows_per_file=chance.choice([2, 3, 9]))
        if chance.random() < 0.5:
            table.delete(f"row % 5 = {chance.randrange(5)}")
        if chance.random() < 0.2:  # rows come to new files, and are dead in the old ones
            table.update({"row": "row"}, f"row % 4 = {chance.randrange(4)}")
    if chance.random() < 0.2:
        table.optimize(target_file_size=chance.choice([3000, 10_000]))
    return table, rows


def checks_of(seeds: range) -> tuple[int, int, int]:
    """Checks made, files left out, and files with deletion vectors among those that were judged."""
    checks = left_out = with_vectors = 0
    for seed in seeds:
        chance = random.Random(seed)
        kinds, nested = chance.choices(KINDS, k=3), chance.choices(KINDS, k=1)
        columns = sql_model.schema_of(kinds, nested)
        schema = StructType((StructField("row", PrimitiveType("long")), *columns))
        table, rows = random_table(chance, schema, kinds, nested)
        snapshot = Table(table.url, store=table.store).snapshot()  # which has read it from the log
        adds = add_files(snapshot.files())
        living = {add.path: [rows[i] for i in Scan(snapshot, None, ("row",)).read([add])["row"].to_pylist()] for add in adds}
        for _ in range(PREDICATES):
            predicate = sql_model.random_predicate(chance, sql_model.columns_of(kinds, nested))
            remaining = set(snapshot.files_matching(predicate)["path"].to_pylist())
            for add in adds:
                matches = add.path not in remaining and any(sql_model.answer(predicate, row) is True for row in living[add.path])
                assert not matches, (seed, str(predicate), add)
            checks += len(adds)
            left_out += len(adds) - len(remaining)
        with_vectors += sum(add.deletion_vector is not None for add in adds) * PREDICATES
    return checks, left_out, with_vectors


def test_thousands_of_predicates_on_files_of_tables_lose_no_row() -> None:
    checks, left_out, with_vectors = checks_of(range(3))
    assert checks >= 500
    assert left_out >= checks // 5
    assert with_vectors >= checks // 10


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_fifty_thousand_predicates_on_files_of_tables_lose_no_row() -> None:
    checks, left_out, with_vectors = checks_of(range(100, 290))
    print(f"\n{checks} checks, {left_out} files left out, {with_vectors} of files with deletion vectors, no row lost")  # noqa: T201
    assert checks >= 50_000
