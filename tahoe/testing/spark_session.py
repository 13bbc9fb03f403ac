"""The Spark session of the fixture `delta_spark`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tahoe.base.exceptions import InvalidRequest, TahoeError, Unsupported
from tahoe.base.missing_extra import missing_pyspark
from tahoe.cli.examination.findings import State
from tahoe.cli.examination.machine import java_version, of_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOR_TESTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "UTC",
}
"""Small queries need few partitions, and expected times must not depend on the machine."""


def spark_problem(environment: Mapping[str, str]) -> TahoeError | None:
    """Return the reason why Spark cannot start: no PySpark, or no suitable Java; None if there is none."""
    for package in ("pyspark", "py4j"):
        if find_spec(package) is None:
            return missing_pyspark("The fixture delta_spark", package)
    finding = of_java(java_version(environment))
    if finding.state is State.OK:
        return None
    return Unsupported(
        f"The fixture delta_spark cannot start Spark. {finding.sentence} {finding.remedy}", code="TAHOE_LIBRARY_MISSING"
    )


def settings_of(lines: list[str]) -> dict[str, str]:
    """Return Spark settings from lines ``name=value``. Raises `InvalidRequest` for a line without ``=``."""
    for line in lines:
        if "=" not in line:
            raise InvalidRequest(f"delta_spark_conf: '{line}' is not a setting; write name=value.", code="DELTA_ILLEGAL_OPTION")
    return {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}


@contextmanager
def shared_session(folder: Path, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Provide a session with Tahoe enabled: the process's active session, or a new one, which is stopped at the end.

    Args:
        folder: for the warehouse of a new session.
        settings: of a new session, in addition to those for tests.
    """
    from pyspark.sql import SparkSession

    import tahoe

    active = SparkSession.getActiveSession()
    if active is not None:
        yield tahoe.enable(active)
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise workers run the first python3 of PATH
    builder = SparkSession.builder.master("local[2]").appName("delta_spark")
    for name, value in {**_FOR_TESTS, "spark.sql.warehouse.dir": str(folder), **settings}.items():
        builder = builder.config(name, value)
    session = tahoe.enable(builder.getOrCreate())
    try:
        yield session
    finally:
        session.stop()
