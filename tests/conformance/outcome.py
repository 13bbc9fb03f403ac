"""The outcome of a case in a session, and its difference from the expectation."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.conformance.cases import Case, Expectation, Step
from tests.conformance.raised import Raised, raised_by
from tests.conformance.rendering import collected, schema_text
from tests.conformance.steps import frame_of, perform
from tests.session_settings import with_settings

__all__ = ["Outcome", "difference_from", "outcome_of"]

DATABASE = "conformance"


@dataclass(frozen=True)
class Outcome:
    """The error of the step under test, and the rows and the schema of the query, or the error of the query after that step."""

    error: Raised | None = None
    rows: tuple[str, ...] | None = None
    schema: str | None = None
    error_of_query: Raised | None = None


def outcome_of(spark: SparkSession, case: Case, folder: Path) -> Outcome:
    """Carry out a case in a fresh database.

    Args:
        folder: a folder that the case has for itself; made where it is missing, and deleted afterwards.

    Raises:
        Exception: a step before the step under test fails; its error is in the outcome.
    """
    folder = folder.resolve()
    with _place(spark, case, folder) as names:
        steps = [_named(step, names) for step in (*case.setup, *case.run)]
        query = _named(case.query, names)
        for step in steps[:-1] if case.run else steps:
            perform(spark, step)
        if not case.run:
            return _rows_or_error(spark, query, folder)
        error = None
        try:
            perform(spark, steps[-1])
        except Exception as caught:  # noqa: BLE001 - any error of the step under test is its outcome
            error = raised_by(caught, str(folder))
        if query is None or (error and case.expected.rows is None):
            return Outcome(error)
        after = _rows_or_error(spark, query, folder)
        return Outcome(error, after.rows, after.schema, error_of_query=after.error)


def _rows_or_error(spark: SparkSession, query: Step, folder: Path) -> Outcome:
    try:
        frame = frame_of(spark, query)
        rows = tuple(row.replace(str(folder), "{folder}") for row in collected(frame))
    except Exception as caught:  # noqa: BLE001 - any error of a query is its outcome
        return Outcome(raised_by(caught, str(folder)))
    return Outcome(None, rows, schema_text(frame.schema))


def difference_from(spark: SparkSession, expected: Expectation, outcome: Outcome) -> str | None:
    """A sentence for the first way in which an outcome is not the expected one, or None."""
    if outcome.error_of_query is not None and (outcome.error is None or expected.rows is not None):
        return f"the query after the step under test raised {outcome.error_of_query.text}"
    if expected.error is None and outcome.error is not None:
        return f"an error was raised, {outcome.error.text}"
    if expected.error is not None:
        if outcome.error is None:
            return f"no error was raised, {expected.error} was expected; the rows are {outcome.rows}"
        if not outcome.error.is_named(expected.error):
            return f"the error is {outcome.error.text}, {expected.error} was expected"
        if expected.message is not None and expected.message not in outcome.error.message:
            return f"the message lacks {expected.message!r}: {outcome.error.text}"
    if expected.rows is not None and outcome.rows != expected.rows:
        return "the rows are\n  {}\nexpected were\n  {}".format("\n  ".join(outcome.rows or ()), "\n  ".join(expected.rows))
    if expected.schema is not None and outcome.schema != (ddl := _schema_of(expected.schema)):
        return f"the schema is {outcome.schema}, {ddl} was expected"
    return None


def _schema_of(ddl: str) -> str:
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    return schema_text(schema)


@contextmanager
def _place(spark: SparkSession, case: Case, folder: Path) -> Iterator[Mapping[str, str]]:
    """A fresh current database and fresh folders, with the settings of the case; all of it is undone at the end."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "folder").mkdir(parents=True)
    names = {"{path}": f"{folder}/table", "{folder}": f"{folder}/folder", "{warehouse}": f"{folder}/warehouse"}
    spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{folder}/warehouse'")
    try:
        spark.sql(f"USE {DATABASE}")
        with with_settings(spark, case.settings):
            yield names
    finally:
        for table in spark.catalog.listTables():
            if table.isTemporary:
                spark.catalog.dropTempView(table.name)
        spark.sql("USE default")
        spark.sql(f"DROP DATABASE {DATABASE} CASCADE")
        shutil.rmtree(folder, ignore_errors=True)


def _named(step: Step | Any, names: Mapping[str, str]) -> Any:
    """A step in which the names of folders are paths."""
    if isinstance(step, str):
        for name, path in names.items():
            step = step.replace(name, path)
        return step
    if isinstance(step, Mapping):
        return {key: _named(value, names) for key, value in step.items()}
    if isinstance(step, list):
        return [_named(value, names) for value in step]
    return step
