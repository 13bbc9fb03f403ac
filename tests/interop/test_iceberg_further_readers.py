"""A sample of the random histories, read by ClickHouse, Sail and DataFusion (`make interop`): format 2 by all, format 3 by those that can."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe.testing.random_history import FORMS, History
from tests.interop.engines import canonical
from tests.interop.further_readers import NEEDS, Engine, missing
from tests.interop.predicates import DIALECTS, predicates

pytestmark = pytest.mark.readers

SAMPLE = int(os.environ.get("TAHOE_HISTORIES", "18"))
# ClickHouse 26.9 and iceberg-rust 0.10 read no Puffin files.
FORMATS = {engine: [form for form in FORMS if engine == "sail" or "puffin" not in form] for engine in NEEDS}


@pytest.fixture(scope="module", params=NEEDS)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if lacking := missing(request.param):
        pytest.skip(f"{' and '.join(lacking)} not installed: run `make interop`")
    with Engine(request.param) as started:
        yield started


@pytest.mark.parametrize("seed", range(SAMPLE))
def test_a_history_is_read_and_filtered(tmp_path: Path, engine: Engine, seed: int) -> None:
    forms = FORMATS[engine.name]
    form = forms[seed % len(forms)]
    chance = random.Random(seed)
    history = History(tmp_path, seed, FORMS[form])
    for _ in history.steps(8):
        pass
    if engine.name == "datafusion":
        if "format 3" in form and history.table.detail()["partitionColumns"]:
            pytest.skip("iceberg-rust 0.10 finds no partition column in manifests of format 3 whose name Avro does not allow")
        history.append()  # it knows the schema of the newest snapshot alone, and to rename a column makes none
    location = history.table.uniform.sync().metadata_location
    ours = history.table.to_arrow()
    full = as_ours(engine.read(location), ours.schema)
    assert rows(engine, full) == rows(engine, ours), f"{engine.name}, {form}, {history}"
    dialect = DIALECTS["spark" if engine.name == "sail" else engine.name]
    for predicate in predicates(ours, chance, 5):
        if predicate.is_for(dialect):
            actual = as_ours(engine.read(location, predicate.sql(dialect)), ours.schema)
            expected = rows(engine, predicate.filtered(full, dialect))
            assert rows(engine, actual) == expected, f"{engine.name}, {form}, {predicate}, {history}"


def as_ours(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Text as text, and times as microseconds."""
    return rows.select(schema.names).cast(schema)


def rows(engine: Engine, table: pa.Table) -> list[tuple[Any, ...]]:
    """In the form that compares; ClickHouse's structs, lists and maps are never null."""
    actual = canonical(table)
    if engine.name != "clickhouse":
        return actual
    return sorted((tuple((name, _filled(value)) for name, value in row) for row in actual), key=repr)


def _filled(value: Any) -> Any:
    """Structs of nulls, and empty lists, as null."""
    if isinstance(value, dict):
        inner = {name: _filled(part) for name, part in value.items()}
        return None if all(part is None for part in inner.values()) else inner
    return [_filled(part) for part in value] or None if isinstance(value, list) else value
