"""The plugin that pytest loads in every project with the extra ``testing``: fixtures for tables and for a Spark session.

delta_path    a path for one table, not created yet
delta_table   a factory: ``delta_table([{"id": 1}])``
delta_spark   one Spark session for all tests, with Tahoe enabled; started at its first use

`tahoe.testing.assertions` has the assertions for them. The fixtures import Tahoe and Spark, so the plugin costs nothing in a project that
does not use them.

PYTEST_DONT_REWRITE: see `tahoe.testing`; a pytest inside another one loads the plugin again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tahoe.testing.temporary_tables import TemporaryTables

_MISSING = "delta_spark_missing"
_CONFIGURATION = "delta_spark_conf"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings of `delta_spark`."""
    parser.addini(_MISSING, "what delta_spark does without PySpark or Java: 'error' (the default) or 'skip'", default="error")
    parser.addini(_CONFIGURATION, "settings of the session of delta_spark, one name=value a line", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    """Check the settings."""
    if config.getini(_MISSING) not in ("error", "skip"):
        raise pytest.UsageError(f"{_MISSING} is 'error' or 'skip', found '{config.getini(_MISSING)}'.")


@pytest.fixture
def delta_path(tmp_path: Path) -> str:
    """A path for one table in the test's own folder; nothing is there yet."""
    return str(tmp_path / "delta")


@pytest.fixture
def delta_table(tmp_path: Path) -> TemporaryTables:
    """A factory of tables in the test's own folder, see `tahoe.testing.temporary_tables.TemporaryTables`."""
    from tahoe.testing.temporary_tables import TemporaryTables

    return TemporaryTables(tmp_path / "delta-tables")


@pytest.fixture(scope="session")
def delta_spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for all tests, with Tahoe enabled: the process's active one, or a new one with two threads."""
    import os

    from tahoe.testing.spark_session import settings_of, shared_session, spark_problem

    problem = spark_problem(os.environ)
    if problem is not None:
        if request.config.getini(_MISSING) == "skip":
            pytest.skip(problem.message)
        raise problem
    settings = settings_of(request.config.getini(_CONFIGURATION))
    with shared_session(tmp_path_factory.mktemp("delta-warehouse"), settings) as session:
        yield session
