"""One Spark session for all tests that need one; Delta is on in it. `plain` is a session of the same JVM in which it is not."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["PYSPARK_PYTHON"] = os.environ.get("TAHOE_WORKER_PYTHON", sys.executable)  # the Python of tasks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

import tahoe
from tests.java_options import JAVA_OPTIONS
from tests.spark.connect_server import connected, drop_all, remote, server

SETTINGS = {
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
    # Spark keeps the plans of a thousand finished queries, which each full collection of the heap visits.
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    # One core fewer for codegen of the same small queries over and over.
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.python.filterPushdown.enabled": "true",
}

FOR_LARGE_DATA = ("spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage")
"""Compiling a query of ten rows and replanning it after each stage takes a quarter of the total time: off, except where a module
is about plans and scans, and wherever `TAHOE_SPARK_AS_USERS_HAVE_IT` is set."""
AS_USERS_HAVE_IT = {
    *(
        "test_deleted_rows",
        "test_golden_with_spark",
        "test_identity_columns",
        "test_merge_as_the_core",
        "test_reading",
        "test_row_ids",
    )
}
"""Modules whose own session is as Spark makes it."""

_SETTINGS_OF_CLUSTERS = (
    "yarn.",
    "mapreduce.job",
    "mapreduce.client",
    "mapreduce.shuffle",
    "hadoop.registry.",
    "hadoop.http.",
    "ipc.",
    "ha.",
)

if "TAHOE_SPARK_AS_USERS_HAVE_IT" not in os.environ:
    SETTINGS |= dict.fromkeys(FOR_LARGE_DATA, "false")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:PySpark does not yet fully support pandas:FutureWarning")
    # PySpark 4.0 leaves sockets of collected results to the garbage collector.
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
    # PySpark 4.0 releases results of Spark Connect by threads that it stops with the first closed session.
    iterator = "<function ExecutePlanResponseReattachableIterator"
    config.addinivalue_line("filterwarnings", f"ignore:Exception ignored in. {iterator}:pytest.PytestUnraisableExceptionWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    # Pytest collects garbage for the last time after this, and then knows no filter of a conftest.py below the root.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A classic session with Delta switched on."""
    builder = SparkSession.builder.master("local[2]").appName("tahoe-tests")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session = tahoe.enable(builder.getOrCreate())
    _remove_cluster_settings(session)
    yield session
    session.stop()


def _remove_cluster_settings(session: SparkSession) -> None:
    """Remove the defaults of YARN and of MapReduce's servers from Hadoop's configuration: Spark sends all of it to each task that reads or
    writes files, which takes a tenth of the suite's processor time."""
    settings = session.sparkContext._jsc.hadoopConfiguration()
    names = [name for name in settings.getPropsWithPrefix("") if name.startswith(_SETTINGS_OF_CLUSTERS)]
    for name in names:
        settings.unset(name)


@pytest.fixture(scope="module", autouse=True)
def _as_users_have_it(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compilation of whole stages and adaptive plans for the modules that name themselves above."""
    if request.module.__name__.rpartition(".")[2] not in AS_USERS_HAVE_IT:
        yield
        return
    session = request.getfixturevalue("spark")
    before = {key: session.conf.get(key) for key in FOR_LARGE_DATA}
    for key in FOR_LARGE_DATA:
        session.conf.set(key, "true")
    yield
    for key, value in before.items():
        session.conf.set(key, value)


@pytest.fixture(scope="session")
def plain(spark: SparkSession) -> SparkSession:
    """A session without Delta: `format("delta")` there is the portable data source."""
    # Past PySpark's method, which switches Delta on in a session made by one that has it.
    actual = SparkSession(spark.sparkContext, spark._jsparkSession.newSession())
    for key in ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions", "spark.sql.python.filterPushdown.enabled"):
        actual.conf.set(key, SETTINGS[key])
    return actual


@pytest.fixture(scope="session")
def java_options() -> str:
    """For ``spark.driver.extraJavaOptions`` of programs that start a Spark of their own."""
    return JAVA_OPTIONS


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a test may make a table."""
    return str(tmp_path / "table")


@pytest.fixture(scope="session")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the log and the events of the server of Spark Connect."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="session")
def shared_server(server_folder: Path, java_options: str) -> Iterator[str]:
    """The URL of a server of Spark Connect whose Python has no Tahoe."""
    with server(server_folder, java_options) as url:
        yield url


@pytest.fixture(scope="module")
def connect(shared_server: str) -> Iterator[Any]:
    """A session of that server, whose catalog is empty before each module."""
    session = connected(shared_server)
    yield session
    with remote():
        drop_all(session)
        session.stop()


@pytest.fixture(params=["classic", "connect"])
def either_session(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A classic session, and a session of Spark Connect."""
    spark = request.getfixturevalue("spark" if request.param == "classic" else "connect")
    with nullcontext() if request.param == "classic" else remote():
        yield spark
