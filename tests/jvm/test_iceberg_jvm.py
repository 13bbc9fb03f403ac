"""Iceberg's own Java library reads the tables of UniForm."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tahoe import Table
from tahoe.testing.random_history import FORMS, History
from tests.interop.engines import canonical
from tests.interop.predicates import DIALECTS, predicates
from tests.jvm.tables import ICEBERG

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("make", ICEBERG.values(), ids=ICEBERG)
def test_the_jvms_iceberg_reads_our_tables(jvm: SparkSession, path: str, make: Callable[[str], Table]) -> None:
    table = make(path)
    table.uniform.sync()
    location = table.uniform.status().metadata_location
    assert location is not None
    theirs = jvm.read.format("iceberg").load(location)
    ours = table.to_arrow()
    assert canonical(ours) == canonical(theirs.toArrow())
    some = theirs.where("id between 20 and 25 and part = 'a'").toArrow()
    assert canonical(some) == canonical(table.to_arrow(filter="id between 20 and 25 and part = 'a'"))


@pytest.mark.parametrize("seed", range(int(os.environ.get("TAHOE_HISTORIES", "12"))))
def test_the_jvms_iceberg_reads_and_plans_histories(jvm: SparkSession, tmp_path: Path, seed: int) -> None:
    """Position deletes and Puffin vectors too; a filter gives the rows of a full scan that fulfil it."""
    form = list(FORMS)[seed % len(FORMS)]
    history = History(tmp_path, seed, FORMS[form])
    for _ in history.steps(8):
        pass
    theirs = jvm.read.format("iceberg").load(history.table.uniform.sync().metadata_location)
    ours = history.table.to_arrow()
    full = theirs.toArrow()
    assert canonical(full) == canonical(ours), f"{form}, {history}"
    for predicate in predicates(ours, random.Random(seed), 3):
        actual = theirs.where(predicate.sql(DIALECTS["spark"])).toArrow()
        expected = canonical(predicate.filtered(full, DIALECTS["spark"]))
        assert canonical(actual) == expected, f"{form}, {predicate}, {history}"
