"""Random programs give the same rows and schemas with Tahoe and with delta-spark, statement by statement."""

from __future__ import annotations

import os
import re
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import tahoe
from tests.conformance.raised import Raised
from tests.random_programs import Outcome, Program, outcomes

pytestmark = pytest.mark.jvm

PROGRAMS = int(os.environ.get("TAHOE_RANDOM_PROGRAMS", "12"))
STATEMENTS = 8
NOT_FOUND = "with name `_metadata` cannot be resolved"
"""An error of delta-spark in a column of its own, for statements that Tahoe carries out."""
MISSING = "DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT"
"""An internal error of delta-spark 4.0.1 in a MERGE."""
UNRESOLVED = "DELTA_MERGE_UNRESOLVED_EXPRESSION"
"""An error of delta-spark 4.0.1 in clauses after UPDATE SET * if the schema evolves and the source lacks a column; not of 4.4.0."""
ALL_PARTITIONS = "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"
"""Tahoe's error for DROP COLUMN of the last column that is not a partition's; delta-spark drops it, and refuses all rows from then on."""
BLANKS = ("'abc   '", "''")
"""Texts that a `varchar(n)` trims and a `char(n)` pads as Spark does; delta-spark refuses the first, and stores the second unpadded."""
LONG_DEFAULT = "EXCEED_LIMIT_LENGTH"
"""Tahoe's and delta-spark 4.4.0's error for a default that its column refuses; 4.0.1 accepts it."""
ANOTHER_VERSION = "DELTA_CDC_START_VERSION_AFTER_LATEST"
"""Tahoe's error for a version that delta-spark has made by a MERGE that copies files without a change."""
EVALUATED = re.compile(r"CAST_OVERFLOW|CAST_INVALID_INPUT|NUMERIC_VALUE_OUT_OF_RANGE|DELTA_EXCEED_CHAR_VARCHAR_LIMIT")
"""Errors in values that one of the engines does not compute, because no row needs them."""


@pytest.fixture(scope="module")
def engines(jvm: SparkSession) -> dict[str, SparkSession]:
    return {"delta-spark": jvm, "tahoe": tahoe.enable(jvm.newSession())}


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_each_statement_leaves_the_same_table(engines: dict[str, SparkSession], tmp_path: Path, seed: int) -> None:
    statements = Program(Random(seed), without=BLANKS).statements(STATEMENTS)
    runs = {name: outcomes(spark, statements, tmp_path / name) for name, spark in engines.items()}
    for statement, theirs, ours in zip(statements, runs["delta-spark"], runs["tahoe"], strict=True):
        if is_known(theirs, ours) or adds_columns_in_vain(statement, theirs, ours):
            return  # the tables differ from here on
        assert summary(theirs.error) == summary(ours.error), (statement, theirs.error, ours.error)
        assert (theirs.answer, theirs.rows, theirs.schema) == (ours.answer, ours.rows, ours.schema), statement


def summary(error: Raised | None) -> str:
    return "succeeds" if error is None else "fails"


def is_known(theirs: Outcome, ours: Outcome) -> bool:
    errors = [error for error in (theirs.error, ours.error) if error is not None]
    if len(errors) != 1:
        return False
    is_of_a_value = EVALUATED.search(errors[0].name) is not None and theirs.rows == ours.rows
    if ours.error is None:
        return is_of_a_value or any(each in errors[0].text for each in (NOT_FOUND, UNRESOLVED, MISSING))
    return is_of_a_value or any(map(ours.error.is_named, (ALL_PARTITIONS, LONG_DEFAULT, ANOTHER_VERSION)))


def adds_columns_in_vain(statement: str, theirs: Outcome, ours: Outcome) -> bool:
    """Whether a MERGE adds columns without values in Tahoe alone, as it does in delta-spark 4.4.0."""
    if not statement.startswith("MERGE WITH SCHEMA EVOLUTION") or theirs.answer != ours.answer:
        return False
    rows = [f"{row} | NULL" for row in theirs.rows or ()]
    return rows == ours.rows and str(ours.schema).startswith(f"{theirs.schema}, ")
