"""Random programs give the same rows and schemas with Tahoe and with delta-spark, statement by statement."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import tahoe
from tahoe.base.exceptions import TahoeWarning
from tests.conformance.raised import Raised, raised_by
from tests.conformance.rendering import collected, schema_text
from tests.jvm.random_programs import Program

pytestmark = pytest.mark.jvm

PROGRAMS = int(os.environ.get("TAHOE_RANDOM_PROGRAMS", "12"))
STATEMENTS = 8
NOT_FOUND = "with name `_metadata` cannot be resolved"
"""An error of delta-spark in a column of its own, for statements that Tahoe carries out."""
EVALUATED = re.compile(r"CAST_OVERFLOW|CAST_INVALID_INPUT|NUMERIC_VALUE_OUT_OF_RANGE|DELTA_EXCEED_CHAR_VARCHAR_LIMIT")
"""Errors in values that one of the engines does not compute, because no row needs them."""


@dataclass(frozen=True)
class Outcome:
    """The error of a statement, or None, and the table's rows and schema after it; of a table that does not exist, None."""

    error: Raised | None
    rows: list[str] | None
    schema: str | None


@pytest.fixture(scope="module")
def engines(jvm: SparkSession) -> dict[str, SparkSession]:
    return {"delta-spark": jvm, "tahoe": tahoe.enable(jvm.newSession())}


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_each_statement_leaves_the_same_table(engines: dict[str, SparkSession], tmp_path: Path, seed: int) -> None:
    statements = Program(Random(seed)).statements(STATEMENTS)
    runs = {name: outcomes(spark, statements, tmp_path / name) for name, spark in engines.items()}
    for statement, theirs, ours in zip(statements, runs["delta-spark"], runs["tahoe"], strict=True):
        if is_known(theirs, ours):
            return  # the tables differ from here on
        assert summary(theirs.error) == summary(ours.error), (statement, theirs.error, ours.error)
        assert (theirs.rows, theirs.schema) == (ours.rows, ours.schema), statement


def outcomes(spark: SparkSession, statements: list[str], folder: Path) -> list[Outcome]:
    database = f"random_{folder.name.replace('-', '_')}"
    spark.sql(f"CREATE DATABASE {database} LOCATION '{folder}'")
    try:
        spark.sql(f"USE {database}")
        return [outcome(spark, statement, str(folder)) for statement in statements]
    finally:
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {database} CASCADE")


def outcome(spark: SparkSession, statement: str, folder: str) -> Outcome:
    error = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TahoeWarning)  # of settings for delta-spark
        try:
            spark.sql(statement).collect()
        except Exception as raised:  # noqa: BLE001 - any error of a random statement is its outcome
            error = raised_by(raised, folder)
    if not spark.catalog.tableExists("t"):
        return Outcome(error, None, None)
    frame = spark.table("t")
    return Outcome(error, list(collected(frame)), schema_text(frame.schema))


def summary(error: Raised | None) -> str:
    return "succeeds" if error is None else "fails"


def is_known(theirs: Outcome, ours: Outcome) -> bool:
    errors = [error for error in (theirs.error, ours.error) if error is not None]
    if len(errors) != 1:
        return False
    is_of_a_value = EVALUATED.search(errors[0].name) is not None and theirs.rows == ours.rows
    return is_of_a_value or (ours.error is None and NOT_FOUND in errors[0].text)
