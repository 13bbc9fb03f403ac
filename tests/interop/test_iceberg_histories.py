"""Random histories are read through Iceberg as they are, after each conversion: rows, old snapshots, statistics, predicates.

`make test` takes the first few seeds, `make soak` all of `TAHOE_HISTORIES` (200); `TAHOE_HISTORY_SEED` takes one alone.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.testing.iceberg_verifier import newest_document, verify
from tahoe.testing.random_history import FORMS, History
from tests.interop.column_statistics import check_statistics
from tests.interop.engines import canonical
from tests.interop.iceberg import duckdb_iceberg, pyiceberg_table, read_pyiceberg
from tests.interop.predicates import DIALECTS, Predicate, predicates

Reader = Callable[..., pa.Table]
READERS: dict[str, Reader] = {"pyiceberg": read_pyiceberg, "duckdb": duckdb_iceberg}
QUICK = 6
HISTORIES = int(os.environ.get("TAHOE_HISTORIES", "200"))


def seeds() -> Iterator[object]:
    if "TAHOE_HISTORY_SEED" in os.environ:
        yield int(os.environ["TAHOE_HISTORY_SEED"])
        return
    for seed in range(HISTORIES):
        yield pytest.param(seed, marks=[pytest.mark.soak] if seed >= QUICK else [])


@pytest.mark.parametrize("seed", list(seeds()))
def test_a_history_is_read_as_it_is_after_each_conversion(tmp_path: Path, seed: int) -> None:
    """Some steps are converted one by one, some together."""
    form = list(FORMS)[seed % len(FORMS)]
    chance = random.Random(seed)
    history = History(tmp_path, seed, FORMS[form])
    for _ in history.steps(8):
        if chance.random() < 0.7:
            check_rows(history, form)
    location = check_rows(history, form)
    verify(history.table.store)
    check_statistics(history.table)
    check_old_snapshots(history, location)
    check_predicates(history, location, chance)


def check_rows(history: History, form: str) -> str:
    location = history.table.uniform.sync().metadata_location
    expected = canonical(history.table.to_arrow())
    for name, read in READERS.items():
        assert canonical(read(location)) == expected, f"{name}, {form}, {history}"
    return location


def check_old_snapshots(history: History, location: str) -> None:
    """Old snapshots show the version that they name."""
    table = history.table
    document = newest_document(table.store)
    assert document is not None
    schema = table.snapshot().metadata.schema_string
    for snapshot in document["snapshots"]:
        version = int(snapshot["summary"]["delta-version"])
        expected = canonical(table.to_arrow(version=version))
        for name, read in READERS.items():
            # DuckDB reads old snapshots under the columns of today.
            if name == "pyiceberg" or table.snapshot(version).metadata.schema_string == schema:
                actual = read(location, snapshot_id=snapshot["snapshot-id"])
                assert canonical(actual) == expected, f"{name}, version {version}, {history}"


def check_predicates(history: History, location: str, chance: random.Random) -> None:
    """Each reader gives for a predicate the rows of its full scan that fulfil it."""
    full = {name: read(location) for name, read in READERS.items()}
    for predicate in predicates(history.table.to_arrow(), chance, 4):
        for name, rows in full.items():
            expected = canonical(predicate.filtered(rows, DIALECTS[name]))
            assert canonical(selected(name, location, predicate)) == expected, f"{name}, {predicate}, {history}"


def selected(name: str, location: str, predicate: Predicate) -> pa.Table:
    if name == "pyiceberg":
        return pyiceberg_table(location).scan(row_filter=predicate.iceberg()).to_arrow()
    return duckdb_iceberg(location, predicate.sql(DIALECTS[name]))
