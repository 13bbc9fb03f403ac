"""A Spark session with the JVM's own Delta and Iceberg in it. Spark fetches their JARs by itself; where it cannot, these tests skip."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["PYSPARK_PYTHON"] = sys.executable

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pyspark
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

# One set of versions that go together; PySpark 4.0 is the newest for which both had a release when this was written.
PYSPARK = "4.0."
PACKAGES = "io.delta:delta-spark_2.13:4.0.1,org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.2"
KEPT = Path(__file__).parents[2] / ".ivy"

SETTINGS = {
    "spark.jars.packages": PACKAGES,
    "spark.jars.ivy": str(KEPT),
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
"""As delta-spark is at its best, for benchmarks too."""
SPARING = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # of ten thousand, in as many tasks VACUUM lists a folder
    # As in tests/spark/conftest.py: most of the time would go into compiling queries that run once over ten rows. Without room for compiled
    # code and cached snapshots of delta-spark, a thousand cases spend three quarters of their time in the sweeper and the garbage collector.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:-UsePerfData",
    "spark.driver.memory": "3g",
    "spark.sql.codegen.wholeStage": "false",
}
"""For tests only: no benchmark may use them, because they slow the JVM down."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:PySpark does not yet fully support pandas:FutureWarning")
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="session")
def jvm() -> Iterator[SparkSession]:
    """A session in which ``delta`` and ``iceberg`` are the JVM's own."""
    if not pyspark.__version__.startswith(PYSPARK):
        pytest.skip(f"the JVM's engines of this test are for PySpark {PYSPARK}x, found {pyspark.__version__}: run `make interop`")
    yield from session_with_jars("tahoe-interop", SETTINGS | SPARING)


def session_with_jars(name: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a session with the JARs of ``spark.jars.packages``; skip the test if they cannot be fetched.

    Spark's process ends without an answer if it cannot fetch them. If all of them are there, it ended for another reason, which is an error.
    """
    builder = SparkSession.builder.master("local[2]").appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    packages, folder = settings["spark.jars.packages"], Path(settings["spark.jars.ivy"])
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED" or not (missing := missing_jars(packages, folder)):
            raise
        pytest.skip(f"Spark could not fetch {', '.join(missing)} into {folder / 'jars'}")
    yield session
    session.stop()


def missing_jars(packages: str, folder: Path) -> list[str]:
    """Return the packages that Spark has not fetched into the Ivy folder."""
    return [
        package
        for package in packages.split(",")
        if not (folder / "jars" / f"{'{}_{}-{}'.format(*package.split(':'))}.jar").exists()
    ]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")
